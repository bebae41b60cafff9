//! What plain SQL says of the jobs of `decimal_epochs`, in either of its databases.

use super::plain::Plain;

macro_rules! jobs_of {
    ($place:literal) => {
        Plain {
            units: concat!(
                "select 'push/",
                $place,
                "-' || j.queue as route,
                        coalesce((select case r.code when 0 then 'delivered' when 2 then 'rejected_recipient'
                                         when 3 then 'rejected_service' else 'suppressed' end
                                    from runs r where r.job = j.id and r.code in (0, 2, 3, 4) order by r.begun desc limit 1),
                                 (select case r.code when 1 then 'retrying' else 'unknown' end
                                    from runs r where r.job = j.id and r.code is not null order by r.begun desc limit 1),
                                 'unattempted') as stands,
                        (case when j.run_at > j.created then j.run_at else j.created end * 1000000)::bigint as due
                   from jobs j where j.queue <> 'probe'"
            ),
            attempts: Some(concat!(
                "select 'push/",
                $place,
                "-' || j.queue as route,
                        case r.code when 0 then 'delivered' when 1 then 'retryable' when 4 then 'suppressed' when 9 then 'unknown'
                             else 'permanent_rejection' end as outcome,
                        (r.begun * 1000000)::bigint as at
                   from runs r join jobs j on j.id = r.job where r.code is not null and j.queue <> 'probe'"
            )),
        }
    };
}

/// Of the one database.
pub const EAST: Plain = jobs_of!("east");

/// Of the other.
pub const WEST: Plain = jobs_of!("west");

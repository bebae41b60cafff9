-- A trigger makes the row of the first sending, and another one that of the next after a failure. Such a row is changed once, when it
-- ends; what became of it is told by which of its columns are NULL, and whether a failure is the last by `next_attempt_at`.
create table notices (
    id         text primary key,
    kind       text not null,
    is_probe   integer not null default 0,
    created_at text not null            -- as in 2026-11-30T10:00:00.123Z
);
create index notices_by_creation on notices (created_at, id);

create table sendings (
    id              integer primary key,
    notice_id       text not null references notices,
    created_at      text not null,
    sent_at         text,
    failed_at       text,
    is_dead_address integer not null default 0,
    next_attempt_at text,
    ended_at        text generated always as (coalesce(sent_at, failed_at)) virtual
);
create index sendings_of on sendings (notice_id);
create index sendings_by_end on sendings (ended_at, id) where ended_at is not null;

create trigger first_sending after insert on notices begin
    insert into sendings (notice_id, created_at) values (new.id, new.created_at);
end;
create trigger next_sending after update of failed_at on sendings when new.next_attempt_at is not null begin
    insert into sendings (notice_id, created_at) values (new.notice_id, new.failed_at);
end;

-- A week of notices.
with recursive numbers (g) as (select 0 union all select g + 1 from numbers where g < 300)
insert into notices (id, kind, is_probe, created_at)
select printf('n-%06d', g), iif(g % 3 = 0, 'alert', 'receipt'), g % 53 = 1,
       strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('-%d seconds', 100 + 6 * g * g))
  from numbers;

-- Some failed first, and were tried again; then most were sent.
update sendings set failed_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '+5 seconds'),
                    next_attempt_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '+35 seconds')
 where cast(substr(notice_id, 3) as integer) % 7 = 0;
update sendings set failed_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '+6 seconds'), is_dead_address = id % 2
 where ended_at is null and cast(substr(notice_id, 3) as integer) % 11 = 5;
update sendings set sent_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '+30 seconds')
 where ended_at is null and cast(substr(notice_id, 3) as integer) % 14 not in (7, 9);

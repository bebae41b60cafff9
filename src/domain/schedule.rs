//! When canaries are due: cron as Kubernetes reads it, intervals, offsets, pauses and maintenance.

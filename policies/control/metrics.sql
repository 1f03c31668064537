grant execute on function internal.job_counts, internal.postgres_counts, api.metrics to control_worker;

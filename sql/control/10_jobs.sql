-- graphile-worker keeps its own tables in this schema and migrates them itself, as our owner.
create schema if not exists graphile_worker;

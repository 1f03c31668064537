-- The totals of actors whose entries are older than app.feed_totals.
select internal.feed_totals_begin();

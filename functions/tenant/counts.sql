-- The counters of internal.count_declare: how many rows a table has, for each value of its key.
select internal.slots_declare('count_change', 'app.row_counts', '{name,key}', '{n}');

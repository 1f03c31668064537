-- migrate:up
-- what functions of exports return: lines as the client gets them, and the cursor of the next batch, null after the last
create type api.lines as (lines text, next_cursor text);

-- migrate:down
drop type api.lines;

-- migrate:up
-- rows of groups outlive the reset of who wrote them, as they outlive the user
update internal.user_data set reset_section = null where declared_in = 'collections' and on_delete = 'set null';

-- migrate:down
update internal.user_data set reset_section = 'collections' where declared_in = 'collections' and on_delete = 'set null';

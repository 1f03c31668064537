-- Functions of sql/ that have another name now: seeds are applied last, when nothing of ours calls them any more. Remove with the next version.
do $$
begin
  drop function if exists internal.tell(text, text);
exception
  when dependent_objects_still_exist then
    null; -- something of the DBA's own uses it
end $$;

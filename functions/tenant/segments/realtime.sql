-- What segments publish: their system events.

select internal.event_source_declare('segment', '{entered,exited}', 'segment.* {segment_id, key, name}, to the user.');

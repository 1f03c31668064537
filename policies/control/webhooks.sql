grant execute on function internal.webhook_replay_operation, api.webhook_replay_start to control_developer;
grant execute on function internal.webhook_owner_json, api.webhook_owner to control_worker;

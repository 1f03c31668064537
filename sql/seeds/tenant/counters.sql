-- The declared counters. With a new one its name comes here, so that every database counts what is there already; the seed fails when it does not.
select internal.counters_begin('{achievement_users_page, app_sessions_page, challenge_participants, challenge_participants_active, inventory_page, media_assets_page, referral_claims, segment_members, streak_users, users_page}');

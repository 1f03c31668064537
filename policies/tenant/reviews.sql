alter table app.reviews enable row level security;
alter table app.review_sums enable row level security;
alter table app.review_votes enable row level security;
alter table app.review_prompts enable row level security;

create policy "administrators read every review" on app.reviews for select to app_admin using (true);
create policy "users read their own reviews" on app.reviews for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read sums of reviews" on app.review_sums for select to app_admin using (true);

-- users read reviews of others through functions, which show published ones of subjects that the caller sees; only
-- definer functions write
grant select on app.reviews to app_user, app_admin;
grant select on app.review_sums to app_admin;
grant execute on function internal.review_shown_json, internal.reviews_of_user, internal.review_named_subject,
  internal.review_subject, internal.review_owner_check, internal.review_attempt, internal.review_write,
  internal.review_text, internal.reviews_shown, internal.review_voted, internal.moderation_subject__review,
  internal.accepted_locales, internal.locale_tag, api.review_put, api.review_delete_own, api.review_helpful,
  api.review_not_helpful, api.review_report, api.reviews_list, api.reviews_mine, api.review_prompt,
  api.review_prompt_shown to app_user;
grant execute on function internal.review_json, internal.review_summary_json, internal.review_settings,
  internal.review_settings_json, internal.reviews_page, internal.review_subject_parts, api.reviews_all,
  api.reviews_summary, api.review_settings_get, api.review_settings_put, api.review_update, api.review_reply,
  api.review_reply_delete, api.review_delete, internal.review_settings_lock, internal.promotion_rows__review_settings,
  internal.promotion_merged__review_settings, internal.promotion_write__review_settings,
  internal.promotion_lock__review_settings to app_admin;

select internal.graphql_declare('app.reviews');
select internal.graphql_declare('app.review_sums');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.reviews', 'app_user_id', 'reviews',
   array['id', 'app_user_id', 'subject_type', 'subject_id', 'rating', 'title', 'body', 'status', 'helpful_count',
         'reply_body', 'reply_at', 'locale', 'app_version', 'published_at', 'created_at', 'updated_at'],
   array['subject_user_id', 'needs_decision'],
   null, 'one of each subject', 'cascade', current_setting('trellis.file')),
  ('app.review_votes', 'app_user_id', 'review_votes', array['review_id', 'app_user_id', 'created_at'], '{}',
   null, 'with app.reviews', 'cascade', current_setting('trellis.file')),
  ('app.review_prompts', 'app_user_id', 'review_prompts', array['app_user_id', 'shown_at'], '{}',
   null, 'the later one', 'cascade', current_setting('trellis.file'));
insert into internal.user_data
  (table_name, user_column, section, exempt_reason, reset_section, on_merge, on_delete, declared_in)
values
  ('app.reviews', 'subject_user_id', 'reviews', 'what others wrote about the user is in their exports', null,
   'one of each subject', 'cascade', current_setting('trellis.file'));

insert into internal.moderated_texts (kind, subject_type, table_name, text_columns, id_column, user_column, at_column,
                                      declared_in)
values ('review', 'review', 'app.reviews', '{title,body}', 'id', 'app_user_id', 'created_at',
        current_setting('trellis.file'));

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('review.published', 'svc.review.published', 'review_id', null, '{rating}', current_setting('trellis.file'));

insert into internal.composed_definitions (kind, promoted_as, singular, plural, fields, max_count, create_order, refs,
                                           is_additive, declared_in)
values
  ('review_settings', 'reviews', 'settings of reviews', 'settings of reviews',
   '{"reviews_auto_publish": ["boolean"], "reviews_require_purchase": ["boolean"], "prompt": ["object"]}',
   1, 80, '[{"path": "$.prompt.segment_id", "kind": "segment", "by": "key"}]', true, current_setting('trellis.file'));

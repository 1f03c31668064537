-- migrate:up
alter table internal.definitions
  add column promoted_as text constraint definitions_promoted_as_form check (promoted_as ~ '^[a-z][a-z_]*$'),
  add column kept_back text,
  add column promoted_refs jsonb constraint definitions_promoted_refs_is_list check (jsonb_typeof(promoted_refs) = 'array');
comment on column internal.definitions.promoted_as is 'The name of the kind in a document of promotion; null means the kind followed by s.';
comment on column internal.definitions.kept_back is 'Why rows of this kind stay in their project; null for a kind that is copied.';
comment on column internal.definitions.promoted_refs is
  'The references of a row in its copied form, where a hook internal.<kind>_promoted gives it another form than its JSON; null means refs.';

-- migrate:down
alter table internal.definitions drop column promoted_refs, drop column kept_back, drop column promoted_as;

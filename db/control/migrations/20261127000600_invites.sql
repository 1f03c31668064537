-- migrate:up
create table app.invites (
  id         uuid primary key default internal.new_id(),
  code_hash  text not null,
  code_hint  text not null,
  note       text constraint invites_note_at_most_200 check (char_length(note) <= 200),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  used_at    timestamptz,
  used_by    uuid references app.developers on delete set null,
  created_at timestamptz not null default internal.now(),
  constraint invites_code_hash_unique unique (code_hash)
);
comment on table app.invites is
  'Codes that let one developer in, each once. code_hash is the SHA-256 of the code in its normal form, code_hint its
   first group.';
create index invites_of_developer on app.invites (used_by);
create index invites_newest on app.invites (created_at desc, id desc);

create table app.waitlist_entries (
  id         uuid primary key default internal.new_id(),
  email      text not null,
  mailbox    text not null,
  note       text constraint waitlist_entries_note_at_most_500 check (char_length(note) <= 500),
  created_at timestamptz not null default internal.now(),
  constraint waitlist_entries_mailbox_is_one check (mailbox = internal.email_mailbox(email)),
  constraint waitlist_entries_mailbox_unique unique (mailbox)
);
comment on table app.waitlist_entries is
  'Who asked for access: at most 10,000 mailboxes, each with the note of its first request.';
create index waitlist_entries_oldest on app.waitlist_entries (created_at, id);

-- migrate:down
drop table app.waitlist_entries;
drop table app.invites;

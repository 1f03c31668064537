-- Email addresses as identities: text columns under a normal form, because citext compares case-sensitively under an
-- empty search_path without a word.
create or replace function internal.email_normal(email text) returns text
language sql immutable parallel safe
return lower(btrim(email_normal.email));
comment on function internal.email_normal is
  'Trimmed and lower-cased: how end users'' addresses are unique within a project.';

create or replace function internal.email_mailbox(email text) returns text
language sql immutable parallel safe
return (
  select case
           when part.domain in ('gmail.com', 'googlemail.com') then replace(part.name, '.', '') || '@gmail.com'
           else part.name || '@' || part.domain
         end
    from (select regexp_replace(split_part(internal.email_normal(email_mailbox.email), '@', 1), '(?<=.)\+.*$',
                                '') as name,
                 split_part(internal.email_normal(email_mailbox.email), '@', 2) as domain) as part
);
comment on function internal.email_mailbox is
  'The mailbox behind an address: no +tag, and for the provider that ignores dots none of them. Two aliases of one
   mailbox are equal.';

create or replace function internal.is_email(email text) returns boolean
language sql immutable parallel safe
return is_email.email is not null
   and char_length(is_email.email) <= 254
   -- a Turkish capital I with dot and the Kelvin sign become i and k: another mailbox would pass for this one
   -- dots separate words (RFC 5321, 4.1.2)
   and is_email.email !~ '(^\.|\.\.|\.@)'
   -- letters are composed, and nothing in it is invisible: two addresses that look alike would be two accounts
   and is_email.email is nfc normalized
   and is_email.email !~
     '[\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0000-\U000E0FFF]'
   and is_email.email ~
     '^[^[:space:][:cntrl:]@,;<>()"\\\u0130\u212A]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])$';
comment on function internal.is_email is
  'Whether a text has the form of a mail address with a dotted domain, in the form that the server gives it
   (server/providers/mail_address.ts); at most 254 characters.';

-- Names, titles and subjects are one line of text: they stand in lists, mails, headers, logs and terminals, where a
-- line break makes a second line of another's choice, and a bidirectional override shows the letters behind it in
-- another order. server/http/schemas.ts (Line) refuses the same characters.
create or replace function internal.is_line(value text) returns boolean
language sql immutable parallel safe
-- control characters, line and paragraph separators, bidirectional embeddings, overrides and isolates
return is_line.value !~ '[\u0001-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]';
comment on function internal.is_line is
  'Whether a text is one line: no control characters, no line or paragraph separators, nothing that changes the
   direction of what follows; null for null.';

create or replace function internal.as_line(value text) returns text
language sql immutable parallel safe
return regexp_replace(as_line.value, '[\u0001-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+', ' ', 'g');
comment on function internal.as_line is 'A text on one line: a space in place of what internal.is_line refuses.';

-- migrate:up
-- addresses are compared with their letters composed; a second account of the same address stays as it is, under its own
update app.developers d set email = normalize(d.email, nfc), mailbox = normalize(d.mailbox, nfc)
 where d.email is not nfc normalized and not exists (select from app.developers o where o.mailbox = normalize(d.mailbox, nfc));

-- migrate:down

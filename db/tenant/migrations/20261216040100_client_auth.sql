-- migrate:up
-- addresses are compared with their letters composed; a second account of the same address stays as it is, under its own
update app.users u set email = normalize(u.email, nfc)
 where u.email is not nfc normalized and not exists (select from app.users o where o.email = normalize(u.email, nfc));
update app.user_identities i set provider_id = normalize(i.provider_id, nfc)
 where i.provider = 'email' and i.provider_id is not nfc normalized
   and not exists (select from app.user_identities o where o.provider = 'email' and o.provider_id = normalize(i.provider_id, nfc));

-- migrate:down

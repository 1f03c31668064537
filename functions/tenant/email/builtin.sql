-- Built-in templates, in six languages. A project replaces one by a template with its key. One layout: a table of one
-- column, which every mail client shows, with colours for light and dark mode; the text alternative says the same.
-- French has a no-break space before a colon. docs/pictures shows them: npm run docs:pictures.
create or replace function internal.email_words()
returns table (key text, locale text, subject text, lead text, label text, validity text, notice text)
language sql immutable as $$
  values
  ('auth.magic_link', 'en', 'Sign in to {{brand}}', 'Open this link to sign in to {{brand}}:', 'Sign in to {{brand}}',
   'It is valid for 15 minutes and works once.',
   'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'),
  ('auth.magic_link', 'de', 'Anmelden bei {{brand}}', 'Öffnen Sie diesen Link, um sich bei {{brand}} anzumelden:',
   'Anmelden bei {{brand}}',
   'Er ist 15 Minuten gültig und funktioniert einmal.',
   'Wenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht: Ohne den Link geschieht nichts. Geben Sie '
   'ihn an niemanden weiter.'),
  ('auth.magic_link', 'es', 'Inicia sesión en {{brand}}', 'Abre este enlace para iniciar sesión en {{brand}}:',
   'Iniciar sesión en {{brand}}',
   'Es válido durante 15 minutos y funciona una sola vez.',
   'Si no lo has pedido, ignora este mensaje: sin el enlace no pasa nada. No lo compartas con nadie.'),
  ('auth.magic_link', 'fr', 'Connexion à {{brand}}', 'Ouvrez ce lien pour vous connecter à {{brand}} :',
   'Se connecter à {{brand}}',
   'Il est valable 15 minutes et ne fonctionne qu’une fois.',
   'Si vous n’avez rien demandé, ignorez ce message : rien ne se passe sans ce lien. Ne le donnez à personne.'),
  ('auth.magic_link', 'pt', 'Entrar em {{brand}}', 'Abra este link para entrar em {{brand}}:', 'Entrar em {{brand}}',
   'É válido por 15 minutos e funciona uma única vez.',
   'Se não foi você que pediu, ignore esta mensagem: sem o link nada acontece. Não o dê a ninguém.'),
  ('auth.magic_link', 'ja', '{{brand}}へのサインイン', '次のリンクを開いて{{brand}}にサインインしてください。', '{{brand}}にサインイン',
   '有効期限は15分で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。リンクを使わなければ何も起こりません。誰にも教えないでください。'),
  ('auth.magic_token', 'en', 'Sign in to {{brand}}', 'Enter this token to sign in to {{brand}}:', '',
   'It is valid for 15 minutes and works once.',
   'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'),
  ('auth.magic_token', 'de', 'Anmelden bei {{brand}}',
   'Geben Sie diesen Schlüssel ein, um sich bei {{brand}} anzumelden:', '',
   'Er ist 15 Minuten gültig und funktioniert einmal.',
   'Wenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht: Ohne den Schlüssel geschieht nichts. Geben '
   'Sie ihn an niemanden weiter.'),
  ('auth.magic_token', 'es', 'Inicia sesión en {{brand}}', 'Introduce esta clave para iniciar sesión en {{brand}}:', '',
   'Es válida durante 15 minutos y funciona una sola vez.',
   'Si no la has pedido, ignora este mensaje: sin la clave no pasa nada. No la compartas con nadie.'),
  ('auth.magic_token', 'fr', 'Connexion à {{brand}}', 'Saisissez cette clé pour vous connecter à {{brand}} :', '',
   'Elle est valable 15 minutes et ne fonctionne qu’une fois.',
   'Si vous n’avez rien demandé, ignorez ce message : rien ne se passe sans cette clé. Ne la donnez à personne.'),
  ('auth.magic_token', 'pt', 'Entrar em {{brand}}', 'Introduza esta chave para entrar em {{brand}}:', '',
   'É válida por 15 minutos e funciona uma única vez.',
   'Se não foi você que pediu, ignore esta mensagem: sem a chave nada acontece. Não a dê a ninguém.'),
  ('auth.magic_token', 'ja', '{{brand}}へのサインイン', '次のトークンを入力して{{brand}}にサインインしてください。', '',
   '有効期限は15分で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。トークンを使わなければ何も起こりません。誰にも教えないでください。'),
  ('auth.otp', 'en', 'Your sign-in code for {{brand}}', 'Your code to sign in to {{brand}}:', '',
   'It is valid for 10 minutes and works once.',
   'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'),
  ('auth.otp', 'de', 'Ihr Anmeldecode für {{brand}}', 'Ihr Code zur Anmeldung bei {{brand}}:', '',
   'Er ist 10 Minuten gültig und funktioniert einmal.',
   'Wenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht: Ohne den Code geschieht nichts. Geben Sie '
   'ihn an niemanden weiter.'),
  ('auth.otp', 'es', 'Tu código de acceso a {{brand}}', 'Tu código para iniciar sesión en {{brand}}:', '',
   'Es válido durante 10 minutos y funciona una sola vez.',
   'Si no lo has pedido, ignora este mensaje: sin el código no pasa nada. No lo compartas con nadie.'),
  ('auth.otp', 'fr', 'Votre code de connexion à {{brand}}', 'Votre code pour vous connecter à {{brand}} :', '',
   'Il est valable 10 minutes et ne fonctionne qu’une fois.',
   'Si vous n’avez rien demandé, ignorez ce message : rien ne se passe sans ce code. Ne le donnez à personne.'),
  ('auth.otp', 'pt', 'O seu código de acesso a {{brand}}', 'O seu código para entrar em {{brand}}:', '',
   'É válido por 10 minutos e funciona uma única vez.',
   'Se não foi você que pediu, ignore esta mensagem: sem o código nada acontece. Não o dê a ninguém.'),
  ('auth.otp', 'ja', '{{brand}}のサインインコード', '{{brand}}にサインインするためのコードです。', '',
   '有効期限は10分で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。コードを使わなければ何も起こりません。誰にも教えないでください。'),
  ('auth.link_code', 'en', 'Confirm your address for {{brand}}',
   'Your code to confirm this address for your account at {{brand}}:', '',
   'It is valid for 10 minutes and works once.',
   'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'),
  ('auth.link_code', 'de', 'Bestätigen Sie Ihre Adresse für {{brand}}',
   'Ihr Code, um diese Adresse für Ihr Konto bei {{brand}} zu bestätigen:', '',
   'Er ist 10 Minuten gültig und funktioniert einmal.',
   'Wenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht: Ohne den Code geschieht nichts. Geben Sie '
   'ihn an niemanden weiter.'),
  ('auth.link_code', 'es', 'Confirma tu dirección para {{brand}}',
   'Tu código para confirmar esta dirección en tu cuenta de {{brand}}:', '',
   'Es válido durante 10 minutos y funciona una sola vez.',
   'Si no lo has pedido, ignora este mensaje: sin el código no pasa nada. No lo compartas con nadie.'),
  ('auth.link_code', 'fr', 'Confirmez votre adresse pour {{brand}}',
   'Votre code pour confirmer cette adresse pour votre compte {{brand}} :', '',
   'Il est valable 10 minutes et ne fonctionne qu’une fois.',
   'Si vous n’avez rien demandé, ignorez ce message : rien ne se passe sans ce code. Ne le donnez à personne.'),
  ('auth.link_code', 'pt', 'Confirme o seu endereço para {{brand}}',
   'O seu código para confirmar este endereço na sua conta {{brand}}:', '',
   'É válido por 10 minutos e funciona uma única vez.',
   'Se não foi você que pediu, ignore esta mensagem: sem o código nada acontece. Não o dê a ninguém.'),
  ('auth.link_code', 'ja', '{{brand}}のメールアドレスの確認', '{{brand}}のアカウントにこのアドレスを登録するためのコードです。', '',
   '有効期限は10分で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。コードを使わなければ何も起こりません。誰にも教えないでください。'),
  ('auth.delete_code', 'en', 'Confirm the deletion of your account at {{brand}}',
   'Your code to delete your account at {{brand}}:', '',
   'It is valid for 10 minutes and works once.',
   'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'),
  ('auth.delete_code', 'de', 'Bestätigen Sie die Löschung Ihres Kontos bei {{brand}}',
   'Ihr Code, um Ihr Konto bei {{brand}} zu löschen:', '',
   'Er ist 10 Minuten gültig und funktioniert einmal.',
   'Wenn Sie das nicht angefordert haben, ignorieren Sie diese Nachricht: Ohne den Code geschieht nichts. Geben Sie '
   'ihn an niemanden weiter.'),
  ('auth.delete_code', 'es', 'Confirma la eliminación de tu cuenta de {{brand}}',
   'Tu código para eliminar tu cuenta de {{brand}}:', '',
   'Es válido durante 10 minutos y funciona una sola vez.',
   'Si no lo has pedido, ignora este mensaje: sin el código no pasa nada. No lo compartas con nadie.'),
  ('auth.delete_code', 'fr', 'Confirmez la suppression de votre compte {{brand}}',
   'Votre code pour supprimer votre compte {{brand}} :', '',
   'Il est valable 10 minutes et ne fonctionne qu’une fois.',
   'Si vous n’avez rien demandé, ignorez ce message : rien ne se passe sans ce code. Ne le donnez à personne.'),
  ('auth.delete_code', 'pt', 'Confirme a eliminação da sua conta {{brand}}',
   'O seu código para eliminar a sua conta {{brand}}:', '',
   'É válido por 10 minutos e funciona uma única vez.',
   'Se não foi você que pediu, ignore esta mensagem: sem o código nada acontece. Não o dê a ninguém.'),
  ('auth.delete_code', 'ja', '{{brand}}のアカウント削除の確認', '{{brand}}のアカウントを削除するためのコードです。', '',
   '有効期限は10分で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。コードを使わなければ何も起こりません。誰にも教えないでください。'),
  ('developer.invite', 'en', 'You are invited to {{brand}}',
   'You are invited to work on {{brand}}. Open this link to accept:', 'Accept the invitation',
   'It is valid for 7 days and works once.', 'If you did not expect this, you can ignore it.'),
  ('developer.invite', 'de', 'Einladung zu {{brand}}',
   'Sie sind eingeladen, an {{brand}} mitzuarbeiten. Öffnen Sie diesen Link, um anzunehmen:', 'Einladung annehmen',
   'Er ist 7 Tage gültig und funktioniert einmal.',
   'Wenn Sie das nicht erwartet haben, ignorieren Sie diese Nachricht.'),
  ('developer.invite', 'es', 'Invitación a {{brand}}',
   'Te han invitado a trabajar en {{brand}}. Abre este enlace para aceptar:', 'Aceptar la invitación',
   'Es válido durante 7 días y funciona una sola vez.', 'Si no lo esperabas, ignora este mensaje.'),
  ('developer.invite', 'fr', 'Invitation à {{brand}}',
   'Vous êtes invité à travailler sur {{brand}}. Ouvrez ce lien pour accepter :', 'Accepter l’invitation',
   'Il est valable 7 jours et ne fonctionne qu’une fois.', 'Si vous ne vous y attendiez pas, ignorez ce message.'),
  ('developer.invite', 'pt', 'Convite para {{brand}}',
   'Recebeu um convite para trabalhar em {{brand}}. Abra este link para aceitar:', 'Aceitar o convite',
   'É válido por 7 dias e funciona uma única vez.', 'Se não o esperava, ignore esta mensagem.'),
  ('developer.invite', 'ja', '{{brand}}への招待', '{{brand}}の開発に招待されました。次のリンクを開いて承諾してください。', '招待を承諾する',
   '有効期限は7日間で、1回だけ使えます。', 'お心当たりがない場合は、このメールを無視してください。')
$$;
comment on function internal.email_words is
  'The words of the built-in templates, by key and locale. label is that of a button; without one the message shows a
   code.';

create or replace function internal.email_layout(locale text, lead text, action text, validity text, notice text)
returns text
language sql immutable as $$
  select '<!doctype html><html lang="' || email_layout.locale
    || '"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
      || '<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light '
         'dark"><style>'
      || ':root{color-scheme:light dark}@media '
         '(prefers-color-scheme:dark){.page{background:#111418!important}.card{background:#1c2127!important;'
      || 'border-color:#343b44!important}.card p{color:#e6e9ed!important}.card '
         '.quiet{color:#9aa4b0!important}.code{background:#111418!important}'
      || '.card .code p{color:#fff!important}}</style></head>'
      || '<body class="page" style="margin:0;padding:0;background:#f3f4f6"><table role="presentation" class="page" '
         'width="100%" cellpadding="0" cellspacing="0" '
      || 'border="0" style="background:#f3f4f6"><tr><td align="center" style="padding:32px 16px"><table '
         'role="presentation" class="card" width="480" '
      || 'cellpadding="0" cellspacing="0" border="0" style="width:100%;max-width:480px;background:#ffffff;border:1px '
         'solid #e0e3e8;border-radius:8px">'
      || '<tr><td style="padding:32px;font-family:-apple-system,BlinkMacSystemFont,''Segoe '
         'UI'',Roboto,Helvetica,Arial,sans-serif">'
      || '<p style="margin:0 0 24px;font-size:20px;line-height:28px;font-weight:700;color:#1c2127">{{brand}}</p>'
      || '<p style="margin:0 0 24px;font-size:16px;line-height:24px;color:#1c2127">' || email_layout.lead || '</p>'
      || email_layout.action
      || '<p style="margin:24px 0 0;font-size:16px;line-height:24px;color:#1c2127">' || email_layout.validity || '</p>'
      || '<p class="quiet" style="margin:24px 0 0;font-size:13px;line-height:20px;color:#667080">'
        || email_layout.notice || '</p>'
      || '</td></tr></table></td></tr></table></body></html>'
$$;
comment on function internal.email_layout is
  'The page of a built-in template: what it says, what there is to do, how long, and what if not.';

create or replace function internal.email_builtin(key text, locale text, out subject text, out html text, out text text)
language sql immutable as $$
  select w.subject,
         internal.email_layout(w.locale, w.lead,
           case when w.label <> ''
                then '<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr><td '
                     'style="background:#2456d6;border-radius:6px">'
                  || '<a href="{{link}}" style="display:inline-block;padding:12px '
                     '24px;font-size:16px;line-height:24px;font-weight:600;color:#ffffff;'
                  || 'text-decoration:none">' || w.label || '</a></td></tr></table>'
                else '<table role="presentation" class="code" width="100%" cellpadding="0" cellspacing="0" border="0" '
                     'style="background:#f3f4f6;border-radius:6px"><tr>'
                  || '<td align="center" style="padding:16px"><p '
                     'style="margin:0;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-weight:700;'
                  || 'color:#1c2127;word-break:break-all;'
                  -- a token is long, and copied; a code is read and typed
                  || case w.key when 'auth.magic_token' then 'font-size:16px;line-height:24px">{{link}}'
                          else 'font-size:32px;line-height:40px;letter-spacing:4px">{{code}}' end
                  || '</p></td></tr></table>' end,
           w.validity, w.notice),
         concat_ws(e'\n\n', w.lead, case when w.label <> '' or w.key = 'auth.magic_token' then '{{link}}'
                                         else '{{code}}' end, w.validity, w.notice) || e'\n'
    from internal.email_words() w
   where w.key = email_builtin.key and w.locale = email_builtin.locale
$$;
comment on function internal.email_builtin is
  'A built-in template in a locale: en, de, es, fr, pt or ja; nulls where there is none.';

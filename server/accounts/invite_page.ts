import type { FastifyInstance } from 'fastify'
import { pageHeaders, pageStyle } from '#server/http/page_policy.ts'

/**
 * Signs in, or creates the account, accepts, and ends the session again. The token is behind the # of the address, which the browser sends to no server; texts go
 * into the page as text only.
 */
const script = `
const form = document.querySelector('form')
const status = document.querySelector('output')
const post = async (path, body, bearer) => {
  const response = await fetch('/v1' + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer ? { authorization: 'Bearer ' + bearer } : {}) },
    body: JSON.stringify(body),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error.message)
  return answer.data
}
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { email, password, account } = Object.fromEntries(new FormData(form))
  form.querySelector('button').disabled = true
  status.textContent = 'One moment.'
  try {
    const path = account === 'new' ? '/auth/developer/signup' : '/auth/developer/login'
    const session = await post(path, { email, password })
    try {
      const member = await post('/admin/invites/accept', { token: location.hash.slice(1) }, session.access_token)
      status.textContent = 'You are a member of ' + member.organization_name + ', as ' + member.role + '.'
      form.hidden = true
    } finally {
      await post('/auth/developer/logout', { refresh_token: session.refresh_token })
    }
  } catch (error) {
    status.textContent = error.message
  } finally {
    form.querySelector('button').disabled = false
  }
})
`

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Accept an invite</title>
<style>${pageStyle}</style>
<h1>Accept an invite</h1>
<noscript><p>This page needs JavaScript. Programs accept with POST /v1/admin/invites/accept.</p></noscript>
<form>
  <label>Email, the address that was invited<input name="email" type="email" autocomplete="username" required></label>
  <label>Password<input name="password" type="password" autocomplete="current-password" minlength="8" required></label>
  <fieldset>
    <legend>Account</legend>
    <label><input name="account" type="radio" value="old" checked> I have an account</label>
    <label><input name="account" type="radio" value="new"> Create one with this password</label>
  </fieldset>
  <button>Accept</button>
</form>
<output role="status"></output>
<script>${script}</script>
</html>
`

const headers = pageHeaders(script, pageStyle)

/** GET /invite: the page that the mail of an invite links to. It loads nothing from other hosts. */
export const invitePage = async (app: FastifyInstance): Promise<void> => {
  app.get('/invite', (_request, reply) => reply.type('text/html; charset=utf-8').headers(headers).send(html))
}

import type { FastifyInstance } from 'fastify'
import { pageHeaders, pageStyle } from '#server/http/page_policy.ts'

/** Signs in, shows which tool asks, decides, and ends the session again. Texts go into the page as text only. */
const script = `
const [signIn, decision] = document.querySelectorAll('form')
const status = document.querySelector('output')
const post = async (path, body, bearer) => {
  const response = await fetch('/v1/auth/developer' + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer ? { authorization: 'Bearer ' + bearer } : {}) },
    body: JSON.stringify(body),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error.message)
  return answer.data
}
let session = null
let userCode = ''
const signOut = async () => {
  const ended = session
  session = null
  if (ended) await post('/logout', { refresh_token: ended.refresh_token })
}
const act = (form, work) => form.addEventListener('submit', async (event) => {
  event.preventDefault()
  // a button that is disabled is not in the data
  const data = Object.fromEntries(new FormData(form, event.submitter))
  const buttons = [...form.querySelectorAll('button')]
  buttons.forEach((button) => { button.disabled = true })
  status.textContent = 'One moment.'
  try {
    status.textContent = await work(data)
  } catch (error) {
    status.textContent = error.message
  } finally {
    buttons.forEach((button) => { button.disabled = false })
  }
})
act(signIn, async ({ user_code, email, password, way }) => {
  if (way === 'mail') {
    await post('/otp/request', { email })
    return 'If there is an account with this address, a code is on its way: enter it in place of the password.'
  }
  const isCode = /^\\s*(\\d\\s*){6}$/.test(password)
  session = isCode ? await post('/otp/verify', { email, code: password }) : await post('/login', { email, password })
  userCode = user_code
  try {
    const tool = await post('/device/find', { user_code }, session.access_token)
    document.querySelector('#tool').textContent = tool.client_name
    document.querySelector('#place').textContent = tool.ip ?? 'an unknown address'
    document.querySelector('#person').textContent = session.developer.email
  } catch (error) {
    await signOut()
    throw error
  }
  signIn.hidden = true
  decision.hidden = false
  return ''
})
act(decision, async ({ approve }) => {
  try {
    const { approved } = await post('/device/approve', { user_code: userCode, approve: approve === 'yes' }, session.access_token)
    return approved ? 'The tool is signed in: go back to it.' : 'The tool was refused.'
  } finally {
    await signOut()
    decision.hidden = true
  }
})
`

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Sign in a tool</title>
<style>${pageStyle}</style>
<h1>Sign in a tool</h1>
<p>A program that you have started shows a code. Enter it only if you have started that program yourself: whoever gave you the code acts as you afterwards.</p>
<noscript><p>This page needs JavaScript. Programs approve with POST /v1/auth/developer/device/approve.</p></noscript>
<form>
  <label>Code that the program shows<input name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX" maxlength="40" required></label>
  <label>Email<input name="email" type="email" autocomplete="username" required></label>
  <label>Password, or the code from the mail<input name="password" type="password" autocomplete="current-password"></label>
  <button name="way" value="password">Continue</button>
  <button name="way" value="mail">Mail me a code</button>
</form>
<form hidden>
  <p><strong id="tool"></strong> asks from <span id="place"></span> to act as <span id="person"></span>, in all of your organizations and projects.</p>
  <button name="approve" value="yes">Approve</button>
  <button name="approve" value="no">Refuse</button>
</form>
<output role="status"></output>
<script>${script}</script>
</html>
`

const headers = pageHeaders(script, pageStyle)

/** GET /device: where a developer approves a tool (RFC 8628, 3.3). It loads nothing from other hosts. */
export const devicePage = async (app: FastifyInstance): Promise<void> => {
  app.get('/device', (_request, reply) => reply.type('text/html; charset=utf-8').headers(headers).send(html))
}

// npm run docs:pictures: the built-in templates of mail as a browser shows them, in docs/pictures. Needs chromium, or CHROMIUM with its path, and a font for
// Japanese. Nothing checks that the pictures are current: run it after changing functions/tenant/email/builtin.sql.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { root } from '#server/root.ts'

const keys = [
  'auth.magic_link',
  'auth.magic_token',
  'auth.otp',
  'auth.link_code',
  'auth.delete_code',
  'developer.invite',
]
const locales = ['en', 'de', 'es', 'fr', 'pt', 'ja']
const sample: Readonly<Record<string, string>> = {
  brand: 'Fjord Fitness',
  code: '482913',
  link: '4fK2s9XbQmVZ7tR1hUe0LwPjYc6Ng8Da',
}
/** A mail client's pane in CSS pixels, and its size on the sheet. */
const pane = { width: 560, height: 444 }
const scale = 0.5

type Shown = { readonly key: string; readonly locale: string; readonly subject: string; readonly html: string }

const templates = async (folder: string): Promise<Shown[]> => {
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    superuserPassword: 'pictures',
    sync: false,
    log: () => undefined,
  })
  try {
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    await client.query('create schema internal')
    await client.query(await readFile(join(root, 'functions/tenant/email/builtin.sql'), 'utf8'))
    const { rows } = await client.query<Shown>(
      `select k as key, l as locale, b.subject, b.html
         from unnest($1::text[]) with ordinality k (k, n)
        cross join unnest($2::text[]) with ordinality l (l, n)
        cross join lateral internal.email_builtin(k.k, l.l) b
        order by k.n, l.n`,
      [keys, locales],
    )
    await client.end()
    return rows
  } finally {
    await postgres.stop()
  }
}

const filled = (text: string) => text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => sample[name] ?? '')
const escaped = (text: string) => text.replace(/[&"<>]/g, (character) => `&#${character.codePointAt(0)};`)

/** One page with a row for each template and a column for each language. */
const sheet = (shown: readonly Shown[]): string => {
  const cells = shown.map(
    ({ subject, html }) =>
      `<figure><figcaption>${escaped(filled(subject))}</figcaption><div><iframe srcdoc="${escaped(filled(html))}"></iframe></div></figure>`,
  )
  const [width, height] = [pane.width * scale, pane.height * scale]
  return `<!doctype html><meta charset="utf-8"><style>
:root{color-scheme:light dark}body{margin:8px;font:13px sans-serif;display:grid;gap:8px;grid-template-columns:repeat(${locales.length},${width}px)}
figure{margin:0;border:1px solid #8886;border-radius:4px;overflow:hidden}figcaption{padding:4px 8px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
div{width:${width}px;height:${height}px;overflow:hidden}iframe{border:0;width:${pane.width}px;height:${pane.height}px;transform:scale(${scale});transform-origin:0 0}
</style>${cells.join('')}`
}

const size = {
  width: locales.length * (pane.width * scale + 8) + 8,
  height: keys.length * (pane.height * scale + 36) + 8,
}
const folder = await mkdtemp(join(tmpdir(), 'trellis-pictures-'))
try {
  const page = join(folder, 'sheet.html')
  await writeFile(page, sheet(await templates(folder)))
  const pictures = join(root, 'docs/pictures')
  await mkdir(pictures, { recursive: true })
  // the values of Blink's preferred colour scheme
  for (const [name, scheme] of [
    ['mail-light.png', 1],
    ['mail-dark.png', 0],
  ] as const) {
    await promisify(execFile)(process.env['CHROMIUM'] ?? 'chromium', [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--hide-scrollbars',
      `--user-data-dir=${join(folder, 'profile')}`,
      `--blink-settings=preferredColorScheme=${scheme}`,
      `--window-size=${size.width},${size.height}`,
      `--screenshot=${join(pictures, name)}`,
      pathToFileURL(page).href,
    ])
    process.stdout.write(`docs/pictures/${name}\n`)
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}

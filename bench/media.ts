// npm run bench:media: throughput and memory of 50 MB files at eight connections, beside nginx with the same files.
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { controlName } from '#server/database/names.ts'
import { createS3Storage } from '#server/media/s3.ts'
import { ask, createTestProject, type ServerProcess } from '#test/support/process.ts'
import { startS3 } from '#test/support/s3.ts'
import { type Child, startChild } from './support/child.ts'
import { processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, type Installation, install } from './support/installation.ts'
import { startNginx } from './support/nginx.ts'
import { figure, median, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'
import type { Transfer, Transferred } from './support/transfer.ts'

const isShort = process.argv.includes('--short')
const rounds = isShort ? 1 : 9
const size = 52_428_800
const connections = 8
/** Each connection fetches so many files in a round. */
const filesOfRound = 5
const type = 'application/octet-stream'

type Side = { readonly name: string; readonly down: number[]; readonly up: number[]; readonly cpu: number[] }
const sideOf = (name: string): Side => ({ name, down: [], up: [], cpu: [] })

type Media = {
  readonly server: ServerProcess
  readonly pid: number
  /** Registers files, and answers their upload URLs and ids. */
  register(count: number): Promise<{ url: string; id: string }[]>
  commit(ids: readonly string[]): Promise<string[]>
  projectId: string
}

const openMedia = async (installation: Installation, env: Record<string, string>): Promise<Media> => {
  const server = await installation.serve(env)
  const scenario = await createTestProject(server.url)
  const control = controlName('trellis')
  await asAdmin(installation.cluster, control, `select internal.operator_project_set($1, 'pro')`, [scenario.projectId])
  const post = async (path: string, body: object) => {
    const { status, body: got } = await ask(server.url, 'POST', `/v1/client/media/${path}`, body, scenario.user)
    if (status >= 300) throw new Error(`${path} answered ${status}: ${JSON.stringify(got)}`)
    return got
  }
  const file = { filename: 'file.bin', mime_type: type }
  // the tier of a project is cached for some seconds
  for (;;) {
    const made = await ask(server.url, 'POST', '/v1/client/media/upload', file, scenario.user)
    if (made.status === 201) break
    await sleep(1000)
  }
  return {
    server,
    pid: server.child.pid ?? 0,
    projectId: scenario.projectId,
    async register(count) {
      const made = await Promise.all(Array.from({ length: count }, () => post('upload', { ...file, size_bytes: size })))
      return made.map((each) => ({ url: each.upload_url, id: each.data.id }))
    },
    async commit(ids) {
      const done = await Promise.all(ids.map((id) => post('commit', { upload_id: id, asset_id: id })))
      return done.map((each) => each.data.storage_url)
    },
  }
}

const rate = ({ bytes, seconds }: Transferred) => bytes / 1e6 / seconds
const repeated = (urls: readonly string[]) => urls.map((url) => Array.from({ length: filesOfRound }, () => url))
const putting = (urls: readonly string[]): Transfer => ({
  method: 'PUT',
  urls: urls.map((url) => [url]),
  headers: { 'Content-Type': type },
  bytes: size,
})
const getting = (urls: readonly string[]): Transfer => ({ method: 'GET', urls: repeated(urls), bytes: size })

const megabytes = (pid: number, field: 'VmRSS' | 'VmHWM'): number => {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) / 1024
}
const forgetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, '5')

/** Peak of the server while the work ran, above what it had before. */
const peakOf = async (pid: number, work: () => Promise<unknown>) => {
  await sleep(1500)
  const before = megabytes(pid, 'VmRSS')
  forgetPeak(pid)
  await work()
  return { before, peak: megabytes(pid, 'VmHWM') }
}

/** Over S3 a download URL leads to one of the storage. */
const placeOf = async (url: string) => {
  const { status, headers } = await fetch(url, { headers: { range: 'bytes=0-0' }, redirect: 'manual' })
  return status === 302 ? (headers.get('location') ?? '') : url
}

type Memory = { readonly name: string; readonly before: number; readonly peak: number }

/** Eight uploads at once with their commits, then eight downloads, of a server that has done one of each. */
const measureMemory = async (media: Media, client: Child, name: string): Promise<Memory[]> => {
  const roundTrip = async (count: number) => {
    const files = await media.register(count)
    const up = async () => {
      await client.ask<Transferred>(putting(files.map(({ url }) => url)))
      return media.commit(files.map(({ id }) => id))
    }
    const down = async (urls: readonly string[]) =>
      client.ask<Transferred>(getting(await Promise.all(urls.map((url) => placeOf(url)))))
    return { up, down }
  }
  const warm = await roundTrip(1)
  await warm.down(await warm.up())
  const { up, down } = await roundTrip(connections)
  let urls: string[] = []
  const uploads = await peakOf(media.pid, async () => {
    urls = await up()
  })
  const downloads = await peakOf(media.pid, () => down(urls))
  return [
    { name: `${name}, uploads`, ...uploads },
    { name: `${name}, downloads`, ...downloads },
  ]
}

/** An S3 server that S3_PEER_URL names, used by presigned URLs alone, as apps use a storage of the kind. */
const openPeer = (url: string) => {
  const storage = createS3Storage(url, () => new Date())
  const projectId = randomUUID()
  const soon = () => new Date(Date.now() + 600_000)
  const shown = { contentType: type, disposition: 'inline', cacheControl: 'no-store' }
  return {
    register: (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const of = { projectId, assetId: randomUUID(), version: randomBytes(12).toString('hex') }
          const link = { ...of, key: 'user/x/file.bin', mimeType: type, sizeBytes: size }
          return { of, url: (await storage.uploadUrl(link, soon())) ?? '' }
        }),
      ),
    async commit(made: readonly { of: { projectId: string; assetId: string; version: string } }[]) {
      for (const { of } of made) await storage.promote(of, () => undefined)
      return Promise.all(
        made.map(
          async ({ of }) =>
            (await storage.downloadUrl(
              { ...of, object: of.version, key: 'file.bin', mimeType: type, filename: 'file.bin', variant: null },
              soon(),
              shown,
            )) ?? '',
        ),
      )
    },
    remove: (made: readonly { of: { assetId: string } }[]) =>
      Promise.all(made.map(({ of }) => storage.remove(projectId, of.assetId))),
    async end() {
      await storage.files.purge(projectId, { kind: 'media', path: projectId })
      await storage.close()
    },
  }
}

requireProc()
const [load = 0] = loadavg()
/** Whoever needs little CPU gains nothing by it where other work takes the most: then the ratio is no finding. */
const isQuiet = load <= availableParallelism()
const installation = await install()
const client = startChild('transfer.ts')
const s3 = await startS3()
const files = join(installation.dataDir, 'media')
const peer = process.env['S3_PEER_URL'] ? openPeer(process.env['S3_PEER_URL']) : null
try {
  const media = await openMedia(installation, {})
  const memory = await measureMemory(media, client, 'files')
  say(`memory: ${JSON.stringify(memory)}`)
  const nginx = await startNginx(files)
  if (!nginx) say('there is no nginx on the PATH and none at BENCH_NGINX: Trellis is measured alone')
  const [ours, theirs, foreign] = [sideOf('Trellis'), sideOf(`nginx ${nginx?.version ?? ''}`), sideOf('S3 peer')]
  const peerMade = (await peer?.register(connections)) ?? []
  if (peer) await client.ask(putting(peerMade.map(({ url }) => url)))
  const peerUrls = (await peer?.commit(peerMade)) ?? []
  const uploaded = await media.register(connections)
  await client.ask(putting(uploaded.map(({ url }) => url)))
  const urls = await media.commit(uploaded.map(({ id }) => id))
  const entries = await readdir(files, { recursive: true, withFileTypes: true })
  const ids = new Set(uploaded.map(({ id }) => id))
  const paths = entries
    .filter((entry) => entry.isFile() && [...ids].some((id) => entry.parentPath.includes(id)))
    .map((entry) => join(entry.parentPath, entry.name).slice(files.length))
  for (let round = 1; round <= rounds; round += 1) {
    const before = processCpu(media.pid)
    const down = await client.ask<Transferred>(getting(urls))
    ours.cpu.push((processCpu(media.pid) - before) / (down.bytes / 1e6))
    ours.down.push(rate(down))
    if (nginx) theirs.down.push(rate(await client.ask(getting(paths.map((path) => nginx.url + path)))))
    const next = await media.register(connections)
    ours.up.push(rate(await client.ask(putting(next.map(({ url }) => url)))))
    // nothing of it is kept: the disk is not what is measured
    for (const { id } of next) await rm(join(files, media.projectId, 'uploads', id), { recursive: true, force: true })
    if (nginx) {
      const targets = Array.from({ length: connections }, (_, n) => `${nginx.url}/uploads/${n}`)
      theirs.up.push(rate(await client.ask(putting(targets))))
    }
    if (peer) {
      foreign.down.push(rate(await client.ask(getting(peerUrls))))
      const more = await peer.register(connections)
      foreign.up.push(rate(await client.ask(putting(more.map(({ url }) => url)))))
      await peer.remove(more)
    }
    const shown = [ours, theirs, foreign].map(
      ({ down: [...d], up: [...u] }) => `${figure(d.at(-1) ?? 0)} / ${figure(u.at(-1) ?? 0)}`,
    )
    say(`round ${round}, MB/s down / up: Trellis ${shown[0]}, nginx ${shown[1]}, S3 peer ${shown[2]}`)
  }
  await nginx?.stop()
  const overS3 = await openMedia(installation, { STORAGE_URL: s3.url })
  memory.push(...(await measureMemory(overS3, client, 'S3')))
  const ratio = nginx ? medianRatio(ours.down, theirs.down) : null
  const grown = Math.max(...memory.map(({ before, peak }) => peak - before))
  const aims: Aim[] = [
    {
      text: `downloads at ${ratio === null ? '-' : figure(ratio)} of nginx (aim: at least 0.7), with a load of ${figure(load)} before the run${isQuiet ? '' : ': too much for a finding'}`,
      isMet: ratio === null || !isQuiet ? null : ratio >= 0.7,
    },
    {
      text: `memory of the server at most ${Math.round(grown)} MB above idle (aim: under 64)`,
      isMet: grown < 64,
    },
  ]
  const sides = [ours, ...(nginx ? [theirs] : []), ...(peer ? [foreign] : [])]
  const text = `## bench:media

${await circumstances('npm run bench:media', { Postgres: installation.postgresVersion, nginx: nginx?.version ?? 'none' })}

Files of 50 MB at ${connections} connections. The client, its own process, reads raw sockets and shares the machine with the server. Downloads come from the page cache: nginx sends
the same files with \`sendfile\`, which copies nothing in user space. Uploads: Trellis asks Postgres whether the URL is open, syncs each file and its folder to the disk
before it answers; nginx renames a temporary file and syncs nothing.${peer ? ' The S3 peer is the server that S3_PEER_URL names, by presigned URLs.' : ''} Medians of ${rounds} rounds in turns.

${table(
  ['side', 'download, MB/s', 'upload, MB/s'],
  sides.map(({ name, down, up }) => [name, figure(median(down)), figure(median(up))]),
)}

A downloaded gigabyte costs the server of Trellis ${figure(median(ours.cpu) / 1000)} seconds of CPU.

Memory of the server process, MB: before, and its peak during ${connections} uploads with their commits, then during ${connections * filesOfRound} downloads at ${connections} connections. With S3 the bytes go to the
storage and come from it.

${table(
  ['storage', 'before', 'peak', 'above'],
  memory.map(({ name, before, peak }) => [name, figure(before), figure(peak), figure(peak - before)]),
)}

${aims.map(aimLine).join('\n')}`
  await publish({ name: 'bench:media', isShort, text })
} finally {
  await client.end()
  await s3.stop()
  await peer?.end()
  await installation.end()
}
process.exit(0)

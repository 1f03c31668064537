import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { all } from '#test/support/supabase_cases/groups.ts'
import { declarationsIn, methodsOf, unnamed } from '../../proofs/supabase/methods.ts'

const client = createClient('http://127.0.0.1:9', 'a key')
const methods = await methodsOf(client, declarationsIn(import.meta.filename))
const names = (of: string) => methods.filter((one) => one.of === of).map(({ name }) => name)

test('every public method of the clients is found, and what is private is not', () => {
  expect(names('supabase')).toEqual(expect.arrayContaining(['from', 'rpc', 'schema', 'channel', 'removeAllChannels']))
  expect(names('from()')).toEqual(expect.arrayContaining(['select', 'insert', 'upsert', 'update', 'delete']))
  expect(names('select()')).toEqual(expect.arrayContaining(['eq', 'or', 'maybeSingle', 'maxAffected', 'regexMatch']))
  expect(names('auth')).toEqual(expect.arrayContaining(['signUp', 'getClaims', 'signInWithOAuth', 'unlinkIdentity']))
  expect(names('auth.mfa')).toEqual(expect.arrayContaining(['enroll', 'challenge']))
  expect(names('auth.admin')).toEqual(expect.arrayContaining(['createUser', 'generateLink']))
  expect(names('storage.from()')).toEqual(expect.arrayContaining(['upload', 'move', 'listV2', 'createSignedUrls']))
  expect(names('realtime')).toEqual(expect.arrayContaining(['setAuth', 'connect']))
  expect(names('channel()')).toEqual(expect.arrayContaining(['subscribe', 'httpSend', 'presenceState']))
  for (const { name } of methods) expect(name).toMatch(/^[a-zA-Z]\w*$/)
  expect(names('auth').filter((name) => name.startsWith('_'))).toEqual([])
})

test('each stands in the table, works or not', () => {
  const calls = all.map(({ call }) => call)
  expect(unnamed(methods, calls)).toEqual([])
  // one that stands nowhere would be told
  expect(
    unnamed(
      methods,
      calls.filter((call) => !call.includes('httpSend')),
    ),
  ).toEqual(['channel().httpSend()'])
})

import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { refusalsOf } from '#server/http/interface.ts'
import { complete, group, route, withoutOwn } from '#server/http/route.ts'
import { Uuid } from '#server/http/schemas.ts'
import { interfaceText, refusalsIn } from '../scripts/docs/interface.ts'

describe('what a function refuses, from its comment', () => {
  const comments = new Map([
    [
      'api.direct',
      'Does it. Refuses 404 NOT_FOUND (a user), USER_NOT_FOUND, 409 LIMIT_REACHED (500 of them), 400 INVALID_INPUT. Locks IT.',
    ],
    ['api.of_another', 'Does it. Refuses as internal.shared and internal.deeper, and 403 FORBIDDEN.'],
    ['api.named', 'Does it: internal.shared.'],
    ['api.forwarded', 'internal.shared, for workers.'],
    ['api.mentions', 'What internal.shared does as well, with the status 404 of HTTP.'],
    ['internal.shared', 'Refuses 404 NOT_FOUND with details.hint. Granted to nobody.'],
    ['internal.deeper', 'Refuses 429 RATE_LIMITED, and as api.of_another.'],
  ])
  test.each([
    ['api.direct', { 404: ['NOT_FOUND', 'USER_NOT_FOUND'], 409: ['LIMIT_REACHED'], 400: ['INVALID_INPUT'] }],
    ['api.of_another', { 403: ['FORBIDDEN'], 404: ['NOT_FOUND'], 429: ['RATE_LIMITED'] }],
    ['api.named', { 404: ['NOT_FOUND'] }],
    ['api.forwarded', { 404: ['NOT_FOUND'] }],
    ['api.mentions', {}],
    ['api.unknown', {}],
  ])('%s', (name, refusals) => {
    expect(refusalsIn(comments, name)).toEqual(refusals)
  })

  test('is a line for each function that refuses something', () => {
    const text = interfaceText({ control: new Map(), tenant: comments })
    expect(JSON.parse(text)).toMatchObject({ control: {}, tenant: { named: { 404: ['NOT_FOUND'] } } })
    expect(text.split('\n')).toContain('    "named": {"404":["NOT_FOUND"]},')
    expect(text).not.toContain('mentions')
  })
})

describe('what a declaration need not say', () => {
  const routeOf = (signature: Parameters<typeof route>[0], more: Parameters<typeof route>[2], by = endUser) =>
    complete(route(signature, 'x', more), by)
  const list = z.strictObject({ data: z.array(z.string()) })
  const one = z.strictObject({ data: z.string() })

  test.each([
    ['GET /client/things', { replies: { 200: list } }, 'LIST_FAILED'],
    ['GET /client/things', { replies: { 200: one } }, 'FETCH_FAILED'],
    ['POST /client/things', { replies: { 201: one } }, 'CREATE_FAILED'],
    ['POST /client/things', { replies: { 202: one } }, 'CREATE_FAILED'],
    ['POST /client/things', { replies: { 200: list }, readOnly: true }, 'FETCH_FAILED'],
    ['POST /client/things', { replies: { 200: one } }, 'UPDATE_FAILED'],
    ['PUT /client/things', { replies: { 201: one } }, 'UPDATE_FAILED'],
    ['DELETE /client/things', { replies: { 200: one } }, 'DELETE_FAILED'],
    ['GET /client/things', { replies: { 200: list }, failure: 'OTHER_FAILED' }, 'OTHER_FAILED'],
    ['GET /client/things', { replies: { 200: list }, failure: null }, null],
  ] as const)('the code of a 500: %s %j', (signature, more, failure) => {
    expect(routeOf(signature, { call: 'x', ...more }).failure).toBe(failure)
  })

  test('the ids of a path; a declared one wins, and the id of the project is of the credentials', () => {
    const text = z.string()
    const found = routeOf('GET /admin/projects/:projectId/things/:thingId/:id/:key/:otherId', {
      call: 'x',
      replies: {},
      params: { otherId: text },
    })
    expect(found.params).toEqual({ thingId: Uuid, id: Uuid, otherId: text })
    expect(routeOf('GET /client/things/:key', { call: 'x', replies: {} }).params).toBeUndefined()
  })

  test('the refusals of its function, and not those of all kinds of definitions', () => {
    expect(refusalsOf('tenant', 'streak_pause')).toMatchObject({ 404: ['STREAK_NOT_FOUND'] })
    const declared = { replies: {}, refusals: { 409: ['OTHER'] } }
    const found = routeOf('PUT /client/streaks/:idOrKey/pause', { ...declared, call: 'streak_pause' })
    expect(found.refusals).toMatchObject({ 404: ['STREAK_NOT_FOUND'] })
    expect(found.refusals[409]).toEqual(expect.arrayContaining(['PAUSE_OVERLAP', 'OTHER']))
    expect(found.own).toEqual({ 409: ['OTHER'] })
    expect(withoutOwn(found).refusals[409]).not.toContain('OTHER')
    const definition = { kind: 'streak_definition', verb: 'create' } as const
    const made = routeOf(
      'POST /admin/projects/:projectId/streaks',
      { ...declared, call: 'definition_create', definition },
      administrator,
    )
    expect(made.refusals).toEqual({ 409: ['OTHER'] })
    const handled = routeOf('POST /client/things', { ...declared, handle: () => Promise.reject(new Error('x')) })
    expect(handled.refusals).toEqual({ 409: ['OTHER'] })
  })

  test('a group gives its routes the path, the caller and what else it names; a route may name its own', () => {
    const one = { call: 'x', replies: {} }
    const [list, found] = group('/client/things', { caller: endUser, source: 'contract' }, [
      route('GET /', 'x', one),
      route('GET /:id', 'y', { ...one, caller: administrator, source: 'supplement' }),
    ])
    expect(list).toMatchObject({
      method: 'GET',
      path: '/client/things',
      caller: endUser,
      source: 'contract',
      summary: 'x',
    })
    expect(found).toMatchObject({ path: '/client/things/:id', caller: administrator, source: 'supplement' })
    expect(group('', endUser, [route('GET /', 'x', one)])).toMatchObject([{ path: '/', caller: endUser }])
    expect(() => group('', endUser, [route('GET /', 'x', { replies: {} })])).toThrow('needs a call or a handler')
  })
})

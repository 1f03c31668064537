type Json = Readonly<Record<string, any>>

const methods = ['get', 'put', 'post', 'delete', 'patch']

/** The schema that a reference stands for. */
const resolved = (document: Json, part: Json | undefined): Json => {
  const { $ref } = part ?? {}
  if (!$ref) return part ?? {}
  return resolved(
    document,
    String($ref)
      .split('/')
      .slice(1)
      .reduce<any>((found, key) => found?.[key], document),
  )
}

/** What `allOf` says together, as one object. */
const merged = (document: Json, part: Json | undefined): Json => {
  const schema = resolved(document, part)
  if (!Array.isArray(schema['allOf'])) return schema
  const { allOf, ...own } = schema
  const parts = [...allOf.map((one: Json) => merged(document, one)), own]
  return {
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...parts.map((one) => one['properties'] ?? {})),
    required: [...new Set(parts.flatMap((one) => one['required'] ?? []))],
  }
}

const typesOf = (schema: Json): string[] => {
  const types = [schema['type'] ?? []].flat() as string[]
  // every integer is a number
  return types.includes('number') ? [...types, 'integer'] : types
}

type Side = 'request' | 'response'
type Pair = { readonly before: Json; readonly after: Json }

const alternatives = (document: Json, schema: Json): Json[] =>
  (schema['anyOf'] ?? schema['oneOf'] ?? [schema]).map((one: Json) => merged(document, one))

/** Bounds of a request, with whether a lower value accepts less. */
const bounds = [
  ['maxLength', true],
  ['maximum', true],
  ['maxItems', true],
  ['minLength', false],
  ['minimum', false],
  ['minItems', false],
] as const

const boundChanges = (before: Json, after: Json, at: string): string[] =>
  bounds.flatMap(([bound, lowerIsLess]) => {
    const [old, now] = [before[bound], after[bound]]
    if (now === undefined || (bound === 'minLength' && now === 0)) return []
    const isNarrower = old === undefined || (lowerIsLess ? now < old : now > old)
    return isNarrower ? [`${at}: ${bound} is ${now}, was ${old ?? 'none'}`] : []
  })

/** References that are being compared: a schema that contains itself, such as a filter, is compared once. */
const underway = new WeakMap<Pair, Set<string>>()

/** What a client of `before` could no longer send, or would no longer find. */
const schemaChanges = (documents: Pair, pair: Pair, side: Side, at: string): string[] => {
  const references = [pair.before['$ref'], pair.after['$ref']]
  if (!references.every((one) => typeof one === 'string')) return changesWithin(documents, pair, side, at)
  const open = underway.get(documents) ?? new Set()
  underway.set(documents, open)
  const key = [side, ...references].join(' ')
  if (open.has(key)) return []
  open.add(key)
  const found = changesWithin(documents, pair, side, at)
  open.delete(key)
  return found
}

const changesWithin = (documents: Pair, pair: Pair, side: Side, at: string): string[] => {
  const before = merged(documents.before, pair.before)
  const after = merged(documents.after, pair.after)
  const [old, now] = [alternatives(documents.before, before), alternatives(documents.after, after)]
  if (old.length > 1 || now.length > 1) {
    // each alternative that a client may send must still be accepted; each that it may get must have been known
    const [given, taken] = side === 'request' ? [old, now] : [now, old]
    const fits = (one: Json, other: Json) =>
      schemaChanges(
        documents,
        side === 'request' ? { before: one, after: other } : { before: other, after: one },
        side,
        at,
      ).length === 0
    return given.every((one) => taken.some((other) => fits(one, other))) ? [] : [`${at}: its alternatives changed`]
  }
  return [...typeChanges(before, after, side, at), ...propertyChanges(documents, { before, after }, side, at)]
}

const typeChanges = (before: Json, after: Json, side: Side, at: string): string[] => {
  const found: string[] = []
  const [old, now] = [typesOf(before), typesOf(after)]
  const [given, taken] = side === 'request' ? [old, now] : [now, old]
  // without a type, anything may be sent or received
  const isAny = (types: string[]) => types.length === 0
  if (isAny(given) ? !isAny(taken) : !isAny(taken) && given.some((type) => !taken.includes(type))) {
    found.push(`${at}: type is ${now.join(' or ') || 'any'}, was ${old.join(' or ') || 'any'}`)
  }
  const values = (schema: Json): unknown[] | undefined =>
    schema['enum'] ?? ('const' in schema ? [schema['const']] : undefined)
  const [oldValues, newValues] = [values(before), values(after)]
  if (side === 'request') {
    if (newValues && !oldValues) found.push(`${at}: only some values are accepted`)
    const gone = oldValues?.filter((value) => newValues && !newValues.includes(value)) ?? []
    if (gone.length > 0) found.push(`${at}: ${gone.join(', ')} is no longer accepted`)
    found.push(...boundChanges(before, after, at))
    if (after['pattern'] && after['pattern'] !== before['pattern']) found.push(`${at}: the pattern changed`)
    if (after['additionalProperties'] === false && before['additionalProperties'] !== false && before['properties']) {
      found.push(`${at}: unknown properties are refused`)
    }
  }
  if (after['format'] && before['format'] !== after['format'] && side === 'request')
    found.push(`${at}: the format changed`)
  return found
}

const propertyChanges = (documents: Pair, { before, after }: Pair, side: Side, at: string): string[] => {
  const found: string[] = []
  const old: Json = before['properties'] ?? {}
  const now: Json = after['properties'] ?? {}
  const required = (schema: Json): string[] => schema['required'] ?? []
  for (const [name, schema] of Object.entries(old)) {
    if (!(name in now)) found.push(`${at}.${name}: removed`)
    else found.push(...schemaChanges(documents, { before: schema, after: now[name] }, side, `${at}.${name}`))
  }
  if (side === 'request') {
    for (const name of required(after)) if (!required(before).includes(name)) found.push(`${at}.${name}: now required`)
  } else {
    for (const name of required(before)) {
      if (name in now && !required(after).includes(name)) found.push(`${at}.${name}: may be missing now`)
    }
  }
  for (const part of ['items', 'additionalProperties']) {
    const [was, is] = [before[part], after[part]]
    if (was && is && typeof was === 'object' && typeof is === 'object') {
      found.push(...schemaChanges(documents, { before: was, after: is }, side, `${at}[]`))
    }
  }
  return found
}

const contentChanges = (documents: Pair, before: Json, after: Json, side: Side, at: string): string[] =>
  Object.entries(before['content'] ?? {}).flatMap(([type, media]) => {
    const now = after['content']?.[type]
    if (!now) return [`${at}: ${type} is gone`]
    return schemaChanges(documents, { before: (media as Json)['schema'], after: now.schema }, side, at)
  })

const parameterChanges = (documents: Pair, before: Json, after: Json, at: string): string[] => {
  const listed = (document: Json, operation: Json) =>
    new Map<string, Json>(
      (operation['parameters'] ?? []).map((one: Json) => {
        const whole = resolved(document, one)
        return [`${whole['in']} ${whole['name']}`, whole]
      }),
    )
  const [old, now] = [listed(documents.before, before), listed(documents.after, after)]
  const found: string[] = []
  for (const [key, parameter] of old) {
    const is = now.get(key)
    if (!is) found.push(`${at} ${key}: removed`)
    else
      found.push(
        ...schemaChanges(documents, { before: parameter['schema'], after: is['schema'] }, 'request', `${at} ${key}`),
      )
  }
  for (const [key, parameter] of now) {
    if (parameter['required'] && !old.get(key)?.['required']) found.push(`${at} ${key}: now required`)
  }
  return found
}

const securityChanges = (documents: Pair, before: Json, after: Json, at: string): string[] => {
  const ways = (document: Json, operation: Json): string[] =>
    (operation['security'] ?? document['security'] ?? []).map((way: Json) => Object.keys(way).sort().join(' '))
  const now = ways(documents.after, after)
  if (now.length === 0) return []
  const old = ways(documents.before, before)
  if (old.length === 0) return [`${at}: needs a credential now`]
  return old.filter((way) => !now.includes(way)).map((way) => `${at}: ${way} is no longer accepted`)
}

const operationChanges = (documents: Pair, before: Json, after: Json, at: string): string[] => {
  const found: string[] = []
  if (before['operationId'] !== after['operationId']) {
    found.push(`${at}: is called ${after['operationId']}, was ${before['operationId']}`)
  }
  found.push(...securityChanges(documents, before, after, at), ...parameterChanges(documents, before, after, at))
  const [oldBody, newBody] = [before['requestBody'], after['requestBody']]
  if (newBody?.required && !oldBody?.required) found.push(`${at}: now requires a body`)
  if (oldBody && !newBody) found.push(`${at}: takes no body any more`)
  if (oldBody && newBody) found.push(...contentChanges(documents, oldBody, newBody, 'request', `${at} body`))
  for (const [status, response] of Object.entries<Json>(before['responses'])) {
    if (!/^[123]/.test(status)) continue
    const now = after['responses'][status]
    if (!now) found.push(`${at}: no longer answers ${status}`)
    else {
      const old = resolved(documents.before, response)
      found.push(...contentChanges(documents, old, resolved(documents.after, now), 'response', `${at} ${status}`))
    }
  }
  return found
}

/** An operation with the parameters that its path has. */
const withParametersOf = (item: Json, operation: Json): Json => ({
  ...operation,
  parameters: [...(item['parameters'] ?? []), ...(operation['parameters'] ?? [])],
})

/**
 * What breaks a client of a released document. New operations, optional parameters and properties, and further values of an enum in
 * responses are no breaks: clients ignore what they do not know (docs/openapi.md).
 */
export const breakingChanges = (before: Json, after: Json): string[] => {
  const documents = { before, after }
  const found: string[] = []
  for (const [path, item] of Object.entries<Json>(before['paths'])) {
    for (const method of methods) {
      const old = item[method]
      if (!old) continue
      const at = `${method.toUpperCase()} ${path}`
      const now = after['paths'][path]?.[method]
      if (now) {
        const whole = after['paths'][path]
        found.push(...operationChanges(documents, withParametersOf(item, old), withParametersOf(whole, now), at))
      } else found.push(`${at}: removed`)
    }
  }
  const schemas = after['components']?.['schemas'] ?? {}
  for (const name of Object.keys(before['components']?.['schemas'] ?? {})) {
    if (!(name in schemas)) found.push(`schema ${name}: removed or renamed`)
  }
  return found
}

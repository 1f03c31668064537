import { onBases } from '#server/http/document/bases.ts'
import { isSchema, type Schema, withParts } from '#server/http/document/json_schemas.ts'
import { pascal, singular, upperFirst } from '#server/http/document/operation_ids.ts'
import { bareText, placeless, spoken, unplacedText } from '#server/http/document/words.ts'
import { wordsKey } from '#server/http/words.ts'

/** A text of schemas that is made once for each: the same objects are asked about often. */
const cached = (make: (content: object) => string) => {
  const texts = new WeakMap<object, string>()
  return (content: object): string => {
    const before = texts.get(content)
    if (before !== undefined) return before
    const text = make(content)
    texts.set(content, text)
    return text
  }
}
const textOf = cached((content) => JSON.stringify(content))
/** Without words: lengths and repetitions are those of what a schema accepts. */
const bareOf = cached(bareText)
/** With words, wherever it stands in a form. */
const unplacedOf = cached(unplacedText)
/** Without the words of its place. */
const own = new WeakMap<Schema, Schema>()
const ownOf = (place: Schema): Schema => {
  const before = own.get(place)
  if (before) return before
  const made = placeless(place)
  own.set(place, made)
  return made
}

/** The names of equal contents: the first wish that is free is granted. */
const register = () => {
  const names = new Map<string, string>()
  const contents = new Map<string, string>()
  return {
    names,
    nameOf: (content: object) => names.get(textOf(content)),
    /** Names a content that has no name yet; false if another content has the name. */
    take: (content: object, name: string): boolean => {
      const text = textOf(content)
      if (names.has(text)) return true
      if (name === '' || contents.has(name)) return false
      names.set(text, name)
      contents.set(name, text)
      return true
    },
  }
}

type Variant = { schema: Schema; text: string; readonly name: string }

/**
 * The names of schemas. Those that accept the same share a name, unless their words differ: a body without words, or a row of a response,
 * is the first that has some.
 */
const schemaRegister = () => {
  const variants = new Map<string, Variant[]>()
  const taken = new Set<string>()
  const find = (schema: Schema): Variant | undefined => {
    const some = variants.get(bareOf(schema))
    if (!some) return undefined
    const text = unplacedOf(schema)
    return text === bareOf(schema) ? some[0] : some.find((variant) => variant.text === text)
  }
  return {
    nameOf: (place: Schema): string | undefined => find(ownOf(place))?.name,
    /** Names a schema that has no name yet; false if another one has the name. */
    take: (place: Schema, name: string): boolean => {
      const schema = ownOf(place)
      if (find(schema)) return true
      const bare = bareOf(schema)
      const some = variants.get(bare) ?? []
      const [first] = some
      if (first && first.text === bare) {
        Object.assign(first, { schema, text: unplacedOf(schema) })
        return true
      }
      if (name === '' || taken.has(name)) return false
      taken.add(name)
      variants.set(bare, [...some, { schema, text: unplacedOf(schema), name }])
      return true
    },
    entries: () => [...variants.values()].flat().map(({ name, schema }) => [name, schema] as const),
  }
}

type Noted = { uses: number; readonly content: object; readonly proposed: readonly string[] }

/** Parts of the document that are written once where several operations have them: responses, parameters. */
export const shared = (kind: 'responses' | 'parameters') => {
  const { names, take, nameOf } = register()
  const noted = new Map<string, Noted>()
  return {
    known: (content: object, name: string) => take(content, name),
    /** Counts a use; the first use proposes names. */
    note: <T extends object>(content: T, ...proposed: readonly string[]): T => {
      const text = textOf(content)
      const before = noted.get(text)
      if (before) before.uses += 1
      else noted.set(text, { uses: 1, content, proposed })
      return content
    },
    /** Decides all names, the most used first: what one operation alone has stays there. */
    settle: () => {
      for (const { uses, content, proposed } of [...noted.values()].sort((a, b) => b.uses - a.uses)) {
        if (uses > 1) proposed.some((name) => take(content, name))
      }
    },
    /** The reference of a content with a name; the content itself without one. */
    refer: (content: object): object => {
      const name = nameOf(content)
      return name ? { $ref: `#/components/${kind}/${name}` } : content
    },
    entries: () => sorted([...names].map(([text, name]) => [name, JSON.parse(text) as object] as const)),
  }
}

const sorted = <T>(entries: readonly (readonly [string, T])[]) =>
  Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)))

type Wish = { readonly rank: number; readonly schema: Schema; readonly names: readonly string[] }

/** The verbs that decide a row's name, best first: what listStreaks lists are Streaks. */
const verbs = ['list', 'create', 'get', 'update', 'set']

/** What a row is called when its noun is another row's. */
const short: Readonly<Record<string, string>> = { list: 'Item', get: 'Detail' }

const isObject = (schema: unknown): schema is Schema =>
  isSchema(schema) && isSchema(schema['properties']) && Object.keys(schema['properties']).length > 0

/** The object that a value consists of: itself, an item of its list, or what it is when it is not null. */
const rowIn = (schema: unknown): Schema | null => {
  if (isObject(schema)) return schema
  if (!isSchema(schema)) return null
  if (schema['type'] === 'array') return rowIn(schema['items'])
  const parts = (Array.isArray(schema['anyOf']) ? schema['anyOf'] : []).filter((part) => part.type !== 'null')
  return parts.length === 1 ? rowIn(parts[0]) : null
}

const dataOf = (reply: Schema): unknown => (isObject(reply) ? (reply['properties'] as Schema)['data'] : undefined)

/** A schema with a name of its own, or null. */
const isNamedOrNull = ([one, other, ...more]: readonly Schema[]) =>
  more.length === 0 && typeof one?.['title'] === 'string' && other?.['type'] === 'null'

/** Whether a schema that occurs twice is worth a name: a long object, union or list of values. */
const isWorthNaming = (schema: Schema, text: string) =>
  (isObject(schema) && text.length >= 90) ||
  (Array.isArray(schema['anyOf']) && text.length >= 200 && !isNamedOrNull(schema['anyOf'])) ||
  (Array.isArray(schema['enum']) && text.length >= 120)

const suffixes: Readonly<Record<string, string>> = {
  data: 'Reply',
  'data limit offset total': 'Page',
  'data pagination': 'CursorPage',
}

/**
 * Names the schemas of the document by rule: rows after the operations that answer them (`Streak`), bodies `CreateStreakInput`, other
 * results `QualifyStreakResult`, envelopes `StreakReply` and `StreakPage`. A `title` in a schema is its name. Equal contents are one schema.
 */
export const schemaNames = () => {
  const { entries, take, nameOf } = schemaRegister()
  const wishes: Wish[] = []
  const replies: { readonly id: string; readonly schema: Schema }[] = []
  const tops: Schema[] = []

  const wishTitles = (schema: Schema): void => {
    if (typeof schema['title'] === 'string') wishes.push({ rank: -1, schema, names: [schema['title']] })
    withParts(schema, (part) => wishTitles(part))
  }

  const grant = () => {
    for (const { schema, names: preferred } of [...wishes].sort((a, b) => a.rank - b.rank)) {
      preferred.some((name) => take(schema, name))
    }
  }

  const nameRepeated = () => {
    const seen = new Map<string, number>()
    const counted = new Set<string>()
    const count = (schema: Schema): void => {
      const text = bareOf(schema)
      seen.set(text, (seen.get(text) ?? 0) + 1)
      if (counted.has(text)) return
      counted.add(text)
      withParts(schema, count)
    }
    for (const schema of tops) count(schema)
    visitNested((schema, owner, path) => {
      const text = bareOf(schema)
      if ((seen.get(text) ?? 0) < 2 || !isWorthNaming(schema, text)) return
      const whole = path.map(singular)
      take(schema, pascal([owner, ...whole.slice(-1)])) || take(schema, pascal([owner, ...whole]))
    })
  }

  /** Calls for each part of a schema with the nearest name above it and the properties that lead there from it. */
  const visitNested = (call: (schema: Schema, owner: string, path: readonly string[]) => void) => {
    const visit = (schema: Schema, owner: string, path: readonly string[]): void => {
      call(schema, owner, path)
      const name = nameOf(schema)
      withParts(schema, (part, property) => {
        const under = name ? [] : path
        visit(part, name ?? owner, property === '' || property === 'item' ? under : [...under, property])
      })
    }
    const done = new Set<string>()
    for (const schema of tops) {
      const text = textOf(schema)
      if (done.has(text)) continue
      done.add(text)
      const row = rowIn(dataOf(schema))
      visit(schema, nameOf(schema) ?? (row && nameOf(row)) ?? '', [])
    }
  }

  const nameReplies = () => {
    for (const { id, schema } of replies) {
      const data = dataOf(schema)
      const row = rowIn(data)
      const rowName = row && nameOf(row)
      const keys = isObject(schema)
        ? Object.keys(schema['properties'] as Schema)
            .sort()
            .join(' ')
        : ''
      const isList = isSchema(data) && data['type'] === 'array'
      const suffix = keys === 'data' && isList ? 'List' : suffixes[keys]
      const usual = rowName && suffix && (isList || isObject(data)) ? [rowName.replace(/Result$/, '') + suffix] : []
      if (bareOf(schema).length < 30 || usual.some((name) => take(schema, name))) continue
      take(schema, `${upperFirst(id)}Reply`)
    }
  }

  const refer = (schema: Schema): Schema => {
    const name = nameOf(schema)
    if (!name) return spoken(withParts(schema, refer))
    return spoken({ $ref: `#/components/schemas/${name}`, [wordsKey]: schema[wordsKey] })
  }

  return {
    known: (schema: Schema, name: string) => take(schema, name),
    body: (id: string, schema: Schema) => {
      tops.push(schema)
      wishTitles(schema)
      if (bareOf(schema).length >= 60) wishes.push({ rank: 20, schema, names: [`${upperFirst(id)}Input`] })
    },
    reply: (id: string, schema: Schema) => {
      tops.push(schema)
      replies.push({ id, schema })
      wishTitles(schema)
      const row = rowIn(dataOf(schema))
      if (!row) return
      const [, admin = '', verb = '', noun = ''] = /^(admin(?=[A-Z]))?([A-Za-z][a-z]*)(.*)$/.exec(id) ?? []
      const at = verbs.indexOf(verb.toLowerCase())
      const word = upperFirst(admin) + (verb.toLowerCase() === 'list' ? singular(noun) : noun)
      wishes.push({
        rank: at < 0 ? 9 : at + (admin ? 10 : 0),
        schema: row,
        names: [
          ...(at < 0 || !noun ? [] : [word]),
          ...(short[verb] ? [`${word}${short[verb]}`] : []),
          `${upperFirst(id)}Result`,
        ],
      })
    },
    /** Decides all names; afterwards `refer` gives a schema by reference. */
    settle: () => {
      grant()
      nameRepeated()
      nameReplies()
    },
    refer,
    entries: () => onBases(sorted(entries().map(([name, schema]) => [name, withParts(schema, refer)] as const))),
  }
}

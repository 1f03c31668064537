import type {} from 'postgraphile'
import { type NamedTable, planNames, type TableNames } from '#server/graphql/naming.ts'

type Table = { readonly relname: string; getNamespace(): { readonly nspname: string } | undefined }
type Attributes = Readonly<Record<string, { readonly extensions?: { readonly tags?: Record<string, unknown> } }>>
type Codec = {
  readonly name: string
  readonly attributes?: Attributes
  readonly extensions?: { readonly pg?: { readonly schemaName: string; readonly name: string } }
}
type Unique = {
  readonly isPrimary?: boolean | undefined
  readonly attributes: readonly string[]
}
type Comment = { readonly tags: Record<string, unknown>; readonly description: string | undefined }
type Commented = { getTagsAndDescription(): Comment; getTags(): Comment['tags'] }
type Relation = {
  readonly isReferencee?: boolean
  readonly isUnique?: boolean
  readonly localAttributes: readonly string[]
  readonly remoteAttributes: readonly string[]
  readonly remoteResource: { readonly codec: Codec }
}
type Details = {
  readonly registry: { readonly pgRelations: Readonly<Record<string, Readonly<Record<string, Relation>>>> }
  readonly codec: Codec
  readonly relationName: string
}
type Build = {
  readonly behavior: { pgCodecRelationMatches(relation: Relation, behavior: string): boolean | undefined }
  readonly inflection: {
    camelCase(text: string): string
    attribute(details: { codec: Codec; attributeName: string }): string
    _singularizedCodecName(codec: Codec): string
  } & Record<
    | 'singleRelation'
    | 'singleRelationBackwards'
    | 'manyRelationConnection'
    | '_singleRelationRaw'
    | '_singleRelationBackwardsRaw'
    | '_manyRelationRaw',
    (details: Details) => string
  >
}

/** A comment as a description alone: what a developer writes on a collection is no instruction to the generator. */
const describe = (entity: unknown, description: string | null | undefined) => {
  const commented = entity as Commented | null | undefined
  if (!commented) return
  const comment: Comment = { tags: {}, description: description ?? undefined }
  commented.getTagsAndDescription = () => comment
  commented.getTags = () => comment.tags
}

const isOfCollections = (table: Table) => table.getNamespace()?.nspname === 'collections'
/** In the generator's registry, where nobody sees it: no two tables have the same one, and no type of Postgres has. */
const registered = (name: string) => `collections.${name}`

const isOurs = ({ extensions }: Codec) => extensions?.pg?.schemaName === 'app'

/** The names of the relations of one type: no two the same, and none that of a column. `wanted` has those that the generator makes, the best first. */
const relationNames = (
  relations: readonly (readonly [string, Relation])[],
  codec: Codec,
  columns: readonly string[],
  isShown: (relation: Relation) => boolean,
  wanted: (relationName: string, relation: Relation) => readonly [string, ...string[]],
): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  const taken = new Set(columns)
  // ours first, then what refers to another table, then what is referred to: each in the order of the catalog
  const rank = ([, { remoteResource, isReferencee }]: readonly [string, Relation]) =>
    (isOurs(remoteResource.codec) && isOurs(codec) ? 0 : 2) + (isReferencee ? 1 : 0)
  for (const [relationName, relation] of [...relations].sort((a, b) => rank(a) - rank(b))) {
    const possible = wanted(relationName, relation)
    if (!isShown(relation)) {
      names.set(relationName, possible[0])
      continue
    }
    const last = possible[possible.length - 1] as string
    let name = possible.find((one) => !taken.has(one))
    for (let n = 2; name === undefined; n += 1) if (!taken.has(`${last}${n}`)) name = `${last}${n}`
    taken.add(name)
    names.set(relationName, name)
  }
  return names
}

/**
 * How tables and columns are named. Tables keep their own names in every schema; a collection whose name, or what the generator makes of it, is taken has the
 * one that server/graphql/naming.ts gives it. `app_user_id` is `userId`, and ids are those of the rows. Comments on our tables may have smart tags.
 */
export const createNames = (tables: readonly NamedTable[]): GraphileConfig.Plugin => {
  const plan = planNames(tables)
  const ofRelations = new Map<Codec, ReadonlyMap<string, string>>()
  let build: Build | undefined
  let isPlain = false
  /** A relation's name on its type: all names of a type are made at once, by the generator's own rules. */
  const relationName = (plain: string, { registry, codec, relationName: asked }: Details): string => {
    if (!build || isPlain) return plain
    const known = ofRelations.get(codec)
    if (known) return known.get(asked) ?? plain
    const { inflection, behavior } = build
    const columns = Object.keys(codec.attributes ?? {}).map((attributeName) =>
      inflection.attribute({ codec, attributeName }),
    )
    const namesFor = (name: string, relation: Relation): readonly [string, ...string[]] => {
      const details = { registry, codec, relationName: name }
      const { codec: remote } = relation.remoteResource
      const row = inflection.camelCase(inflection._singularizedCodecName(remote))
      if (!relation.isUnique)
        return [inflection.manyRelationConnection(details), inflection.camelCase(inflection._manyRelationRaw(details))]
      if (relation.isReferencee)
        return [
          inflection.singleRelationBackwards(details),
          inflection.camelCase(inflection._singleRelationBackwardsRaw(details)),
        ]
      // beside a column `code` the row that `code_id` names goes by the name of its table
      return [inflection.singleRelation(details), row, inflection.camelCase(inflection._singleRelationRaw(details))]
    }
    const isShown = (relation: Relation) =>
      behavior.pgCodecRelationMatches(
        relation,
        relation.isUnique ? 'singularRelation:resource:single' : 'manyRelation:resource:connection',
      ) ?? false
    isPlain = true
    try {
      const relations = Object.entries(registry.pgRelations[codec.name] ?? {})
      const names = relationNames(relations, codec, columns, isShown, namesFor)
      ofRelations.set(codec, names)
      return names.get(asked) ?? plain
    } finally {
      isPlain = false
    }
  }
  const plannedOf = (codec: Codec): TableNames | undefined => {
    const { schemaName, name } = codec.extensions?.pg ?? {}
    return schemaName === 'collections' && name !== undefined ? plan.get(name) : undefined
  }
  const columnName = (codec: Codec, name: string) => {
    const planned = plannedOf(codec)?.columns.get(name)?.base
    if (planned !== undefined) return planned
    return name === 'app_user_id' && !('user_id' in (codec.attributes ?? {})) ? 'user_id' : name
  }
  return {
    name: 'TrellisNames',
    after: ['PgSimplifyInflectionPlugin'],
    gather: {
      namespace: 'trellisNames' as never,
      hooks: {
        pgIntrospection_introspection(_info, { introspection }) {
          // those are refusals of writes
          for (const constraint of introspection.constraints) describe(constraint, undefined)
          for (const table of introspection.classes) {
            if (table.relkind === 'i' || table.relkind === 'I' || !isOfCollections(table)) continue
            describe(table, table.getDescription())
            describe(table.getType(), undefined)
            for (const column of table.getAttributes()) describe(column, column.getDescription())
          }
        },
        // a number of a transaction, in columns of machinery: none is granted, and the generator must not stumble over them
        async pgCodecs_findPgCodec(info, event) {
          if (event.pgCodec || event.pgType.typname !== 'xid8') return
          event.pgCodec = info.lib.dataplanPg.TYPES.bigint
        },
      },
    },
    schema: {
      hooks: {
        build(made) {
          build = made as unknown as Build
          return made
        },
      },
    },
    inflection: {
      replace: {
        _schemaPrefix: () => '',
        tableResourceName(previous, _options, details) {
          if (isOfCollections(details.pgClass)) return registered(details.pgClass.relname)
          return previous?.(details) ?? details.pgClass.relname
        },
        classCodecName(previous, _options, details) {
          if (isOfCollections(details.pgClass)) return registered(details.pgClass.relname)
          return previous?.(details) ?? details.pgClass.relname
        },
        // a relation of a collection is known by what it joins, and not by what camel case leaves of that
        resourceRelationName(previous, _options, details) {
          const { localClass, foreignClass, localAttributes, foreignAttributes, isReferencee } = details
          if (!isOfCollections(localClass) && !isOfCollections(foreignClass)) return previous?.(details) ?? ''
          const columns = (isReferencee ? foreignAttributes : localAttributes).map(({ attname }) => attname)
          return `${isReferencee ? 'of' : 'to'} ${foreignClass.getNamespace()?.nspname}.${foreignClass.relname} by ${columns.join(' ')}`
        },
        _codecName(previous, _options, codec) {
          const planned = plannedOf(codec as Codec)
          return planned ? this.camelCase(planned.base) : (previous?.(codec) ?? codec.name)
        },
        _resourceName(previous, _options, resource) {
          return plannedOf(resource.codec as Codec)?.base ?? previous?.(resource) ?? resource.name
        },
        _attributeName(_previous, _options, { attributeName, codec }) {
          const tagged = codec.attributes[attributeName]?.extensions?.tags?.['name']
          return this.coerceToGraphQLName(
            typeof tagged === 'string' ? tagged : columnName(codec as Codec, attributeName),
          )
        },
        singleRelation: (previous, _options, details) =>
          relationName(previous?.(details) ?? details.relationName, details as unknown as Details),
        singleRelationBackwards: (previous, _options, details) =>
          relationName(previous?.(details) ?? details.relationName, details as unknown as Details),
        manyRelationConnection: (previous, _options, details) =>
          relationName(previous?.(details) ?? details.relationName, details as unknown as Details),
      },
    },
  }
}

/** Rows are found by their id and by keys of one column; never by a column that is hidden. */
export const Keys: GraphileConfig.Plugin = {
  name: 'TrellisKeys',
  schema: {
    entityBehavior: {
      pgResourceUnique: {
        inferred: {
          after: ['postInferred'],
          provides: ['trellisKeys'],
          callback(behavior, [resource, unique]) {
            const { isPrimary, attributes } = unique as Unique
            const columns = resource.codec.attributes as Readonly<
              Record<string, { readonly extensions?: { readonly canSelect?: boolean } }>
            >
            const isHidden = attributes.some((name) => columns[name]?.extensions?.canSelect === false)
            const isKey = isPrimary || attributes.length === 1
            return isKey && !isHidden ? behavior : [behavior, '-single', '-query:resource:single']
          },
        },
      },
    },
  },
}

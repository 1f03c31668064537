import type {} from 'postgraphile'

type Table = { readonly relname: string; getNamespace(): { readonly nspname: string } | undefined }
type Codec = { readonly attributes: Readonly<Record<string, unknown>> }
type Unique = {
  readonly isPrimary?: boolean | undefined
  readonly attributes: readonly string[]
}
type Comment = { readonly tags: Record<string, unknown>; readonly description: string | undefined }
type Commented = { getTagsAndDescription(): Comment; getTags(): Comment['tags'] }

/** A comment as a description alone: what a developer writes on a collection is no instruction to the generator. */
const describe = (entity: unknown, description: string | null | undefined) => {
  const commented = entity as Commented | null | undefined
  if (!commented) return
  const comment: Comment = { tags: {}, description: description ?? undefined }
  commented.getTagsAndDescription = () => comment
  commented.getTags = () => comment.tags
}

/**
 * How tables and columns are named. Tables keep their own names in every schema; a collection with the name of one of our tables begins with
 * `collection`. `app_user_id` is `userId`, and ids are those of the rows. Comments on our tables may have smart tags.
 */
export const createNames = (): GraphileConfig.Plugin => {
  let ours: ReadonlySet<string> = new Set()
  const isTaken = (table: Table) => table.getNamespace()?.nspname === 'collections' && ours.has(table.relname)
  const columnName = (codec: Codec, name: string) =>
    name === 'app_user_id' && !('user_id' in codec.attributes) ? 'user_id' : name
  return {
    name: 'TrellisNames',
    after: ['PgSimplifyInflectionPlugin'],
    gather: {
      namespace: 'trellisNames' as never,
      hooks: {
        pgIntrospection_introspection(_info, { introspection }) {
          const tables = introspection.classes.filter((table) => table.relkind !== 'i' && table.relkind !== 'I')
          ours = new Set(
            tables.filter((table) => table.getNamespace()?.nspname === 'app').map((table) => table.relname),
          )
          // those are refusals of writes
          for (const constraint of introspection.constraints) describe(constraint, undefined)
          for (const table of tables) {
            if (table.getNamespace()?.nspname !== 'collections') continue
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
    inflection: {
      replace: {
        _schemaPrefix: () => '',
        tableResourceName(previous, _options, details) {
          const name = previous?.(details) ?? details.pgClass.relname
          return isTaken(details.pgClass) ? `collection_${name}` : name
        },
        classCodecName(previous, _options, details) {
          const name = previous?.(details) ?? details.pgClass.relname
          return isTaken(details.pgClass) ? this.camelCase(`collection_${name}`) : name
        },
        _attributeName(_previous, _options, { attributeName, codec }) {
          const tagged = codec.attributes[attributeName]?.extensions?.tags?.['name']
          return this.coerceToGraphQLName(typeof tagged === 'string' ? tagged : columnName(codec, attributeName))
        },
        // beside a column `code` the row that `code_id` names goes by the name of its table
        singleRelation(previous, _options, details) {
          const name = previous?.(details) ?? details.relationName
          const { registry, codec, relationName } = details
          const columns = Object.keys(codec.attributes).map((attributeName) => this.attribute({ codec, attributeName }))
          if (!columns.includes(name)) return name
          const remote = registry.pgRelations[codec.name]?.[relationName]?.remoteResource.codec
          return remote ? this.camelCase(this._singularizedCodecName(remote)) : name
        },
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

import { PgSimplifyInflectionPreset } from '@graphile/simplify-inflection'
import { makeSchema } from 'postgraphile'
import type { PgAdaptor, WithPgClient } from 'postgraphile/@dataplan/pg'
import type { GraphQLSchema } from 'postgraphile/graphql'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { usualPage } from '#server/graphql/limits.ts'
import { createNames, Keys } from '#server/graphql/names.ts'
import type { NamedTable } from '#server/graphql/naming.ts'

/** Every list has a size. */
const Pages: GraphileConfig.Plugin = {
  name: 'TrellisPages',
  schema: {
    hooks: {
      GraphQLObjectType_fields_field_args(args, _build, { scope }) {
        if (!scope.isPgFieldConnection || !args['first']) return args
        return { ...args, first: { ...args['first'], defaultValue: usualPage } }
      },
    },
  },
}

/** Plugins that are off. */
const unused = [
  // nothing is written, watched, called or sent in parts
  'MutationPlugin',
  'MutationPayloadQueryPlugin',
  'PgMutationCreatePlugin',
  'PgMutationUpdateDeletePlugin',
  'PgMutationPayloadEdgePlugin',
  'SubscriptionPlugin',
  'PgProceduresPlugin',
  'PgJWTPlugin',
  // reads rows of tables while the schema is built
  'PgEnumTablesPlugin',
  // ids are those of the rows, not global ones
  'NodePlugin',
  'NodeAccessorPlugin',
  'NodeIdCodecBase64JSONPlugin',
  'NodeIdCodecPipeStringPlugin',
  'AddNodeInterfaceToSuitableTypesPlugin',
  'RegisterQueryNodePlugin',
  'PgNodeIdAttributesPlugin',
  'PgTableNodePlugin',
  'QueryQueryPlugin',
  // each request brings its own connection
  'PgContextPlugin',
]

/** The generator leaves out what it cannot add, a field whose name is taken say: the schema is made without it, and the log says so. */
const reporting = (problems: string[]): GraphileConfig.Plugin => ({
  name: 'TrellisProblems',
  schema: {
    hooks: {
      build(build) {
        build.handleRecoverableError = (error: Error) => void problems.push(error.message)
        return build
      },
    },
  },
})

const presetFor = (
  withPgClient: WithPgClient,
  tables: readonly NamedTable[],
  problems: string[],
): GraphileConfig.Preset => ({
  extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset],
  plugins: [createNames(tables), Keys, Pages, reporting(problems)],
  disablePlugins: unused,
  gather: { installWatchFixtures: false, muteWarnings: true },
  schema: {
    defaultBehavior: '-insert -update -delete -list -resource:connection:backwards',
    // they are reported instead
    dontSwallowErrors: true,
  },
  grafast: { explain: false, timeouts: { planning: 2000, execution: 15_000 } },
  pgServices: [
    {
      name: 'main',
      schemas: ['app', 'collections'],
      withPgClientKey: 'withPgClient',
      pgSettingsKey: 'pgSettings',
      adaptor: { createWithPgClient: () => withPgClient } as unknown as PgAdaptor,
    } as never,
  ],
})

export type Made = {
  readonly schema: GraphQLSchema
  readonly resolvedPreset: GraphileConfig.ResolvedPreset
  /** What is not in the schema, and should be. */
  readonly problems: readonly string[]
}

/**
 * Makes the schema of what the role of this connection may read; `tables` is internal.graphql_tables() of the same database. It keeps nothing of the
 * connection: databases of one shape share a schema.
 */
export const buildSchema = async (withPgClient: WithPgClient, tables: readonly NamedTable[]): Promise<Made> => {
  const problems: string[] = []
  const { schema, resolvedPreset } = await makeSchema(presetFor(withPgClient, tables, problems))
  return { schema, resolvedPreset, problems }
}

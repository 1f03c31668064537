import { PgSimplifyInflectionPreset } from '@graphile/simplify-inflection'
import { makeSchema } from 'postgraphile'
import type { PgAdaptor, WithPgClient } from 'postgraphile/@dataplan/pg'
import type { GraphQLSchema } from 'postgraphile/graphql'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { usualPage } from '#server/graphql/limits.ts'
import { createNames, Keys } from '#server/graphql/names.ts'

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
  'StreamDeferPlugin',
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

const presetFor = (withPgClient: WithPgClient): GraphileConfig.Preset => ({
  extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset],
  plugins: [createNames(), Keys, Pages],
  disablePlugins: unused,
  gather: { installWatchFixtures: false, muteWarnings: true },
  schema: { defaultBehavior: '-insert -update -delete -list -resource:connection:backwards' },
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

export type Made = { readonly schema: GraphQLSchema; readonly resolvedPreset: GraphileConfig.ResolvedPreset }

/** Makes the schema of what the role of this connection may read. It keeps nothing of the connection: databases of one shape share a schema. */
export const buildSchema = async (withPgClient: WithPgClient): Promise<Made> => {
  const { schema, resolvedPreset } = await makeSchema(presetFor(withPgClient))
  return { schema, resolvedPreset }
}

import { deleteSourceMap, deleteSourceMaps, listSourceMaps } from '../../../sdk/src/generated/admin.ts'
import { plain } from '../../../server/plain.ts'
import { type Api, apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { CliError, exits, usageError } from '../exit.ts'
import { projectFor } from '../settings.ts'

type SourceMap = {
  readonly id: string
  readonly release: string
  readonly bundle: string
  readonly packed_size: number
  readonly updated_at: string
}

/** All source maps of a project, or those of a release, newest upload first. */
const mapsOf = async (api: Api, projectId: string, release?: string): Promise<readonly SourceMap[]> => {
  const maps = new Map<string, SourceMap>()
  for (let offset = 0; ; ) {
    const query = { limit: 200, offset, ...(release === undefined ? {} : { release }) }
    const { data, total } = await api.call(listSourceMaps, { path: { projectId }, query })
    for (const map of data) maps.set(map.id, map)
    offset += data.length
    if (data.length === 0 || offset >= total) return [...maps.values()]
  }
}

const countOf = (n: number) => `${n} ${n === 1 ? 'source map' : 'source maps'}`

export const sourcemapsList: Command = {
  name: 'sourcemaps list',
  summary: 'List the source maps of the project, newest upload first',
  flags: { release: { value: 'VERSION', about: 'Those of one release' } },
  async run(context) {
    const { terminal } = context
    const projectId = await projectFor(context)
    const maps = await mapsOf(await apiFor(context), projectId, context.option('release'))
    terminal.answer(maps, () => {
      if (maps.length === 0)
        terminal.print('There is no source map: trellis sourcemaps push uploads those of a release.')
      else
        terminal.table(
          maps.map(({ release, bundle, packed_size, updated_at }) => [
            plain(release),
            plain(bundle),
            `${Math.ceil(packed_size / 1024)} KB`,
            plain(updated_at),
          ]),
        )
    })
    return exits.done
  },
}

export const sourcemapsDelete: Command = {
  name: 'sourcemaps delete',
  summary: 'Delete the source maps of a release, or that of one bundle',
  about: 'Reports of the release show the frames of the bundle as they came from then on.',
  flags: {
    release: { value: 'VERSION', about: 'The release' },
    bundle: { value: 'NAME', about: 'The map of this bundle alone' },
    yes: { short: 'y', about: 'Do not ask' },
  },
  async run(context) {
    const { terminal } = context
    const [release, bundle] = [context.option('release'), context.option('bundle')]
    if (release === undefined) throw usageError('--release is missing.', 'Name the release: --release 1.4.0.')
    const projectId = await projectFor(context)
    const api = await apiFor(context)
    const maps = (await mapsOf(api, projectId, release))
      .filter((map) => bundle === undefined || map.bundle === bundle)
      .toSorted((a, b) => (a.bundle < b.bundle ? -1 : 1))
    if (maps.length === 0) {
      const of = bundle === undefined ? plain(release) : `${plain(bundle)} in ${plain(release)}`
      throw new CliError('NOT_FOUND', exits.notFound, `There is no source map of ${of}.`)
    }
    if (!terminal.isJson) for (const map of maps) terminal.print(`${terminal.paint.red('-')} ${plain(map.bundle)}`)
    if (!context.has('yes')) {
      if (!terminal.isInteractive) throw usageError('Nobody can be asked.', 'Say --yes.')
      const answer = await terminal.ask(`Delete ${countOf(maps.length)} of ${plain(release)}? Only yes goes on:`)
      if (answer !== 'yes') throw new CliError('NOT_CONFIRMED', exits.failed, 'Nothing was deleted.')
    }
    if (bundle === undefined) await api.call(deleteSourceMaps, { path: { projectId }, query: { release } })
    else for (const { id } of maps) await api.call(deleteSourceMap, { path: { projectId, sourceMapId: id } })
    const deleted = maps.map((map) => map.bundle)
    terminal.answer({ release, deleted }, () =>
      terminal.print(`${countOf(deleted.length)} of ${plain(release)} deleted.`),
    )
    return exits.done
  },
}

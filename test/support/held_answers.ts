import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import type { Project } from '#test/support/harness.ts'
import { untilBlocked } from '#test/support/transaction.ts'

export type Held = {
  /** Resolves when an answer is ready and held. */
  begun(): Promise<void>
  release(): Promise<void>
}

const lock = 4711

/** Answers of a function of schema api are held from now on, before their transaction commits: what commits meanwhile they know nothing of. */
export const holdAnswers = async (project: Project, name: string): Promise<Held> => {
  const [was] = await project.sql<{ definition: string; arguments: string; names: string }>(
    `select pg_get_functiondef(p.oid) as definition, pg_get_function_arguments(p.oid) as arguments, array_to_string(p.proargnames, ', ') as names
       from pg_proc p where p.pronamespace = 'api'::regnamespace and p.proname = $1`,
    [name],
  )
  if (!was) throw new Error(`there is no api.${name}`)
  const { definition, arguments: args, names } = was
  if (!definition.includes(`api.held_${name}`)) {
    await project.sql(
      definition
        .replace(`api.${name}(`, `api.held_${name}(`)
        // its own parameters
        .replaceAll(new RegExp(`(?<![\\w.])${name}\\.`, 'g'), `held_${name}.`),
    )
    await project.sql(
      `grant execute on all functions in schema api to public;
       create or replace function api.${name}(${args}) returns api.reply language plpgsql volatile as $held$
       declare
         answer constant api.reply := api.held_${name}(${names});
       begin
         perform pg_advisory_xact_lock_shared(${lock});
         return answer;
       end $held$`,
    )
  }
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const holder = new pg.Client({ connectionString: url.href })
  await holder.connect()
  await holder.query('select pg_advisory_lock($1)', [lock])
  let isHeld = true
  const release = async () => {
    if (!isHeld) return
    isHeld = false
    await holder.end()
  }
  onTestFinished(release)
  return { begun: () => untilBlocked(project), release }
}

import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

// SQLite's locks on an empty file: the system gives them back when their holder is killed, so none is ever stale, and
// they work alike on Linux and macOS, between processes and within one. Nothing is written, not even on a full disk.
const open = (file: string) => new DatabaseSync(file, { timeout: 0 })

const begin = (lock: DatabaseSync, how: string): boolean => {
  try {
    lock.exec(`pragma journal_mode = memory; ${how}`)
    return true
  } catch (error) {
    const busy = 5
    if ((error as { errcode?: number }).errcode === busy) return false
    throw error
  }
}

/** Runs `work` under an exclusive lock on the file. */
export const alone = async <Result>(file: string, work: () => Promise<Result>): Promise<Result> => {
  const lock = open(file)
  try {
    while (!begin(lock, 'begin exclusive')) await sleep(10)
    return await work()
  } finally {
    lock.close()
  }
}

/** Marks `file` as in use, beside others who do, until the returned function is called or this process ends. */
export const use = (file: string): (() => void) => {
  const lock = open(file)
  // a read within a transaction keeps its shared lock until the end of it
  if (begin(lock, 'begin; select 1 from sqlite_schema')) return () => lock.close()
  lock.close()
  throw new Error(`${file} is locked by another program`)
}

export const isInUse = (file: string): boolean => {
  const lock = open(file)
  const isFree = begin(lock, 'begin exclusive')
  lock.close()
  return !isFree
}

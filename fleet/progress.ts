import type { Logger } from 'pino'

/** A step that was done on one database: for a terminal as a sentence, for logs as fields. */
export type Step = {
  readonly database: string
  readonly action: 'migrated' | 'built' | 'updated' | 'failed'
  readonly seconds: number
  /** Which one of how many, where there are many. */
  readonly done?: number
  readonly of?: number
  readonly error?: string
}

export type Progress = (step: Step) => void

const seconds = (value: number) => `${value.toFixed(1)} s`

/** "37 of 200  trellis_9f31 updated in 0.2 s" */
export const sentenceOf = ({ database, action, seconds: took, done, of, error }: Step): string => {
  const place = of === undefined ? '' : `${String(done).padStart(String(of).length)} of ${of}  `
  return `${place}${database} ${action} ${action === 'failed' ? 'after' : 'in'} ${seconds(took)}${error ? `: ${error}` : ''}`
}

export const logged =
  (log: Pick<Logger, 'info' | 'warn'>): Progress =>
  (step) => {
    const fields = { ...step, seconds: Number(step.seconds.toFixed(3)) }
    if (step.action === 'failed') log.warn(fields, sentenceOf(step))
    else log.info(fields, sentenceOf(step))
  }

/** Reports when `work` is done, and its duration; nothing when its result says that there was nothing to do. The caller reports failures. */
export const timed = async <T>(
  progress: Progress,
  database: string,
  action: Step['action'],
  work: () => Promise<T>,
  isSomething: (result: T) => boolean = () => true,
): Promise<T> => {
  const began = performance.now()
  const result = await work()
  if (isSomething(result)) progress({ database, action, seconds: (performance.now() - began) / 1000 })
  return result
}

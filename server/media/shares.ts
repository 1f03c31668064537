/** Whose work it is: a project's, and within the project that of the owner of the file. */
export type Share = { readonly projectId: string; readonly owner: string }

/** What may wait: of one owner, of one project, of all, and of all when the project has nothing that waits yet. */
export const mostWaiting = { owner: 60, project: 100, total: 200, newcomers: 400 } as const
/** Work that takes longer than this on average leaves one process to others. */
const longMs = 2000
/** What a project has used counts half after a minute. */
const halfLifeMs = 60_000
const rememberedProjects = 1000

type Used = { ms: number; at: number; averageMs: number; running: number }

/** Divides the processes: the project that has used the least time of late is next, and one whose work takes long leaves a process to others. */
export const createShares = (processes: number, now = () => performance.now()) => {
  const projects = new Map<string, Used>()
  const usedOf = ({ projectId }: Share): Used => {
    const known = projects.get(projectId) ?? { ms: 0, at: now(), averageMs: 0, running: 0 }
    known.ms *= 0.5 ** ((now() - known.at) / halfLifeMs)
    known.at = now()
    return known
  }
  const keep = (projectId: string, used: Used) => {
    projects.delete(projectId)
    projects.set(projectId, used)
    if (projects.size <= rememberedProjects) return
    for (const [oldest, { running }] of projects) {
      if (running > 0) continue
      projects.delete(oldest)
      return
    }
  }
  return {
    /** The work that is next, the first of its project; none where all that waits would take what is others'. */
    choose<T extends { readonly share: Share }>(waiting: readonly T[]): T | undefined {
      let [chosen, least] = [undefined as T | undefined, Number.POSITIVE_INFINITY]
      const seen = new Set<string>()
      for (const work of waiting) {
        if (seen.has(work.share.projectId)) continue
        seen.add(work.share.projectId)
        const { ms, averageMs, running } = usedOf(work.share)
        if (running > 0 && averageMs > longMs && running >= processes - 1) continue
        // what runs has used nothing yet
        const counted = ms + running * Math.max(averageMs, 1)
        if (counted < least) [chosen, least] = [work, counted]
      }
      return chosen
    },
    /** Called when work begins; the answer is called when it ends. */
    begin(share: Share): () => void {
      const began = now()
      const used = usedOf(share)
      used.running += 1
      keep(share.projectId, used)
      return () => {
        const took = now() - began
        const after = usedOf(share)
        after.running = Math.max(0, after.running - 1)
        after.ms += took
        after.averageMs = after.averageMs === 0 ? took : after.averageMs * 0.7 + took * 0.3
        keep(share.projectId, after)
      }
    },
  }
}

type Turn = { readonly share: Share; readonly resolve: () => void; readonly reject: (error: Error) => void }

/** So many are at work at once; who waits is chosen so that the project with the fewest at work is next, and within it the owner with the fewest. */
export const createTurns = (atOnce: number) => {
  const waiting = new Set<Turn>()
  const working = new Map<string, number>()
  let count = 0
  const ownerOf = ({ projectId, owner }: Share) => `${projectId} ${owner}`
  const add = (share: Share, change: 1 | -1) => {
    count += change
    for (const key of [share.projectId, ownerOf(share)]) {
      const left = (working.get(key) ?? 0) + change
      if (left > 0) working.set(key, left)
      else working.delete(key)
    }
  }
  // a share of each is left to others, so that a newcomer is at work at once
  const ofProject = Math.max(1, Math.floor(atOnce * 0.75))
  const isBehind = (a: Share, b: Share) => {
    const [projectA, projectB] = [working.get(a.projectId) ?? 0, working.get(b.projectId) ?? 0]
    if (projectA !== projectB) return projectA < projectB
    return (working.get(ownerOf(a)) ?? 0) < (working.get(ownerOf(b)) ?? 0)
  }
  const next = () => {
    while (count < atOnce) {
      let chosen: Turn | undefined
      for (const turn of waiting) {
        if ((working.get(turn.share.projectId) ?? 0) >= ofProject) continue
        if (!chosen || isBehind(turn.share, chosen.share)) chosen = turn
      }
      if (!chosen) return
      waiting.delete(chosen)
      add(chosen.share, 1)
      chosen.resolve()
    }
  }
  const refuse = (share: Share): string | null => {
    let [ofOwner, ofTheProject] = [0, 0]
    for (const turn of waiting) {
      if (turn.share.projectId !== share.projectId) continue
      ofTheProject += 1
      if (turn.share.owner === share.owner) ofOwner += 1
    }
    if (ofOwner >= mostWaiting.owner) return 'Too many images of this owner wait to be changed.'
    if (ofTheProject >= mostWaiting.project) return 'Too many images of this project wait to be changed.'
    const most = ofTheProject === 0 ? mostWaiting.newcomers : mostWaiting.total
    return waiting.size >= most ? 'Too many images wait to be changed.' : null
  }
  return {
    /** Waits for a turn; the answer ends it. Rejects where too many wait, or when `signal` is aborted before. */
    async take(share: Share, signal?: AbortSignal): Promise<() => void> {
      const refused = signal?.aborted ? 'Nobody waits for this image.' : refuse(share)
      if (refused !== null) throw new Error(refused)
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          if (waiting.delete(turn)) reject(new Error('Nobody waits for this image.'))
        }
        const turn: Turn = {
          share,
          resolve: () => {
            signal?.removeEventListener('abort', leave)
            resolve()
          },
          reject,
        }
        signal?.addEventListener('abort', leave, { once: true })
        waiting.add(turn)
        next()
      })
      return () => {
        add(share, -1)
        next()
      }
    },
    close(message: string) {
      for (const { reject } of waiting) reject(new Error(message))
      waiting.clear()
    },
  }
}

import { readdir } from 'node:fs/promises'
import { type Area, isArea } from '#server/http/route.ts'

/** Every area: all exports of the files in server/routes. No list has to be maintained. */
export const loadAreas = async (): Promise<Area[]> => {
  const folder = new URL('../routes/', import.meta.url)
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts')).sort()
  const modules = await Promise.all(
    names.map((name) => import(new URL(name, folder).href) as Promise<Record<string, unknown>>),
  )
  return modules.flatMap((module) => Object.values(module)).filter(isArea)
}

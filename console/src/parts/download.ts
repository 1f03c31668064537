import { accessToken } from '../api.ts'

/** Stores what a path answers as a file on the visitor's machine. */
export const download = async (path: string, name: string): Promise<void> => {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${accessToken() ?? ''}` } })
  if (!answer.ok) {
    const { error } = (await answer.json().catch(() => ({}))) as { error?: { message?: string } }
    throw new Error(error?.message ?? `The server answered ${answer.status}.`)
  }
  const url = URL.createObjectURL(await answer.blob())
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

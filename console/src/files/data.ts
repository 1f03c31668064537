import { useQuery } from '@tanstack/react-query'
import { adminGetMedia, adminListMedia, listMediaFolders } from '../../../sdk/src/generated/admin.ts'
import type { MediaFolder, Media as Released } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'

export type { MediaFolder }
/** With what the released document of the SDK has not yet. */
export type Media = Released & { readonly is_public: boolean; readonly public_url: string | null }

/** A signed address of this server without its host: a page that was opened under another name of the server may load it, too. */
export const ownUrl = (url: string): string => {
  const { pathname, search, host } = new URL(url, location.origin)
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(host)
  return isLocal || host === location.host ? `${pathname}${search}` : url
}

const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
export const bytes = (size: number | null | undefined): string => {
  if (size === null || size === undefined) return '—'
  const step = size === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(size) / Math.log(1024)))
  const value = size / 1024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}

const kinds: Readonly<Record<string, string>> = {
  'image/png': 'PNG picture',
  'image/jpeg': 'JPEG picture',
  'image/webp': 'WebP picture',
  'image/avif': 'AVIF picture',
  'image/gif': 'GIF picture',
  'video/mp4': 'MP4 video',
  'audio/mpeg': 'MP3 sound',
  'application/pdf': 'PDF',
  'application/json': 'JSON',
  'text/plain': 'Text',
  'application/zip': 'ZIP archive',
}
export const kindOf = (type: string): string => kinds[type] ?? type.split('/').at(-1) ?? type
export const kindChoices = Object.entries(kinds).map(([value, label]) => ({ value, label }))
export const isPicture = ({ mime_type }: Pick<Media, 'mime_type'>): boolean => mime_type.startsWith('image/')

export const useFolders = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['folders', path.projectId],
    queryFn: async () => (await call(listMediaFolders, { path, query: { limit: 100 } })).data,
  })
}

export const useFile = (id: string | undefined) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['file', path.projectId, id],
    enabled: id !== undefined,
    staleTime: 60_000,
    queryFn: async () => (await call(adminGetMedia, { path: { ...path, assetId: id ?? '' } })).data as Media,
  })
}

/** Files to choose from. */
export const useFiles = (search: string, limit = 60) => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['files', path.projectId, search, limit],
    placeholderData: (before) => before,
    queryFn: async () =>
      (await call(adminListMedia, { path, query: { status: 'committed', limit, ...(search ? { search } : {}) } }))
        .data as unknown as readonly Media[],
  })
}

import { FileImage } from 'lucide-react'
import { adminListMedia } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 2,
  title: 'Files',
  icon: FileImage,
  words: 'media images pictures video uploads storage',
  pages: [
    { path: 'files', title: 'Library', load: () => import('./library.tsx') },
    {
      path: 'files/catalogs',
      title: 'Catalogs',
      words: 'ordered selection of files for apps',
      load: async () => ({ Page: (await import('./catalogs.tsx')).List }),
    },
    { path: 'files/catalogs/new', load: async () => ({ Page: (await import('./catalogs.tsx')).New }) },
    { path: 'files/catalogs/$id', load: async () => ({ Page: (await import('./catalogs.tsx')).One }) },
    {
      path: 'files/buckets',
      title: 'Buckets',
      words: 'supabase storage public private',
      load: async () => ({ Page: (await import('./buckets.tsx')).List }),
    },
    { path: 'files/buckets/new', load: async () => ({ Page: (await import('./buckets.tsx')).New }) },
    { path: 'files/buckets/$id', load: async () => ({ Page: (await import('./buckets.tsx')).One }) },
    { path: 'files/jobs', title: 'Jobs', words: 'resize convert thumbnails', load: () => import('./jobs.tsx') },
    {
      path: 'files/storage',
      title: 'Storage',
      words: 'buckets bytes usage limit',
      load: () => import('./storage.tsx'),
    },
  ],
  actions: [{ title: 'Upload files', to: 'files', words: 'image picture' }],
  find: {
    title: 'Files',
    rows: async (projectId, text) => {
      const { data } = await call(adminListMedia, { path: { projectId }, query: { search: text, limit: 5 } })
      return data.map(({ id, filename, mime_type }) => ({
        id,
        title: filename,
        about: mime_type,
        to: `files?file=${id}`,
      }))
    },
  },
})

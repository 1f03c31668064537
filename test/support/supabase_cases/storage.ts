import type { PartCase, World } from '#test/support/supabase_cases/case.ts'

const file = async ({ own }: World, name: string) => `${await own()}/${name}`
const text = { contentType: 'text/plain' }

export const storage: PartCase[] = [
  {
    part: 'Files',
    call: "storage.from('media').upload('user/<id>/a.txt', body, { contentType, upsert })",
    run: async (world) =>
      world.client.storage.from('media').upload(await file(world, 'a.txt'), 'hello', { ...text, upsert: true }),
    gives: {},
    note: '`cacheControl` is not kept',
  },
  {
    part: 'Files',
    call: '.upload(path, blob)',
    run: async (world) =>
      world.client.storage
        .from('media')
        .upload(await file(world, 'b.txt'), new Blob(['hello'], { type: 'text/plain' }), { upsert: true }),
    gives: {},
  },
  {
    part: 'Files',
    call: '.upload(path, body, { metadata })',
    run: async (world) =>
      world.client.storage.from('media').upload(await file(world, 'm.txt'), 'x', { ...text, metadata: { a: 1 } }),
    refuses: 'INVALID_INPUT',
    note: 'metadata is not kept',
  },
  {
    part: 'Files',
    call: '.download(path)',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').download(await file(world, 'a.txt'))
      return { data: { text: await data?.text() }, error }
    },
    gives: { text: 'hello' },
  },
  {
    part: 'Files',
    call: '.list(folder, { limit, offset, search, sortBy })',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').list(await world.own(), { limit: 1 })
      return { data: { first: data?.[0]?.name }, error }
    },
    gives: { first: 'a.txt' },
    note: 'by name, ascending or descending; `search` is the beginning of a name',
  },
  {
    part: 'Files',
    call: '.createSignedUrl(path, seconds, { download, transform }), .createSignedUrls(paths, seconds)',
    run: async (world) => {
      const signed = await world.client.storage.from('media').createSignedUrl(await file(world, 'a.txt'), 60)
      return { data: { text: await (await fetch(signed.data?.signedUrl ?? '')).text() }, error: signed.error }
    },
    gives: { text: 'hello' },
    note: 'at most a day; `transform` has width, height, resize (cover, contain) and format',
  },
  {
    part: 'Files',
    call: '.info(path), .exists(path)',
    run: async (world) => world.client.storage.from('media').info(await file(world, 'a.txt')),
    gives: { size: 5 },
  },
  {
    part: 'Files',
    call: '.remove(paths)',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').remove([await file(world, 'a.txt')])
      return { data: { removed: data?.length }, error }
    },
    gives: { removed: 1 },
    note: 'at most 100 paths',
  },
  {
    part: 'Files',
    call: '.move(), .copy(), .createSignedUploadUrl(), .getPublicUrl()',
    run: async (world) => world.client.storage.from('media').createSignedUploadUrl(await file(world, 'c.txt')),
    refuses: 'BUCKET_NOT_FOUND|NoSuchKey|NOT_FOUND',
    note: 'not served; public files have an [address of their own](media.md#public-files)',
  },
  {
    part: 'Files',
    call: "storage.from('avatars')",
    run: ({ client }) => client.storage.from('avatars').upload('x.txt', 'x', text),
    refuses: 'BUCKET_NOT_FOUND',
    note: 'the bucket is `media`',
  },
]

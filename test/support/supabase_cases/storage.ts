import { Upload } from 'tus-js-client'
import type { PartCase, World } from '#test/support/supabase_cases/case.ts'

const file = async ({ own }: World, name: string) => `${await own()}/${name}`
/** The key that the client was made with. */
const keyOf = ({ client }: World) => (client as unknown as { supabaseKey: string }).supabaseKey
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
    run: async (world) => {
      const path = await file(world, 'm.txt')
      const files = world.client.storage.from('media')
      await files.upload(path, 'x', { ...text, metadata: { a: 1 }, upsert: true })
      return files.info(path)
    },
    gives: { metadata: { a: 1 } },
    note: 'an object of at most 8 KB, which `info()` answers',
  },
  {
    part: 'Files',
    call: 'new tus.Upload(file, { endpoint, headers, metadata }) of tus-js-client, and Uppy, to /storage/v1/upload/resumable',
    run: async (world) => {
      const path = await file(world, 'resumable.txt')
      const files = world.client.storage.from('media')
      const { session } = (await world.client.auth.getSession()).data
      const endpoint = files.getPublicUrl('').data.publicUrl.replace(/object\/public\/.*$/, 'upload/resumable')
      await new Promise<void>((resolve, reject) =>
        new Upload(Buffer.from('hello'), {
          endpoint,
          chunkSize: 3,
          headers: { apikey: keyOf(world), authorization: `Bearer ${session?.access_token}`, 'x-upsert': 'true' },
          metadata: { bucketName: 'media', objectName: path, contentType: 'text/plain' },
          onSuccess: () => resolve(),
          onError: reject,
        }).start(),
      )
      return files.info(path)
    },
    gives: { size: 5 },
    note: 'within a day; not by a signed upload URL: see [files](supabase-js.md#files)',
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
    call: '.listV2({ prefix, with_delimiter, limit, cursor, sortBy })',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').listV2({ prefix: `${await world.own()}/m` })
      return { data: { names: data?.objects.map(({ name }) => name.split('/').at(-1)), next: data?.hasNext }, error }
    },
    gives: { names: ['m.txt'], next: false },
  },
  {
    part: 'Files',
    call: '.move(from, to, { destinationBucket }), .copy(from, to, { destinationBucket })',
    run: async (world) => {
      const files = world.client.storage.from('media')
      await files.copy(await file(world, 'm.txt'), await file(world, 'n.txt'))
      return files.move(await file(world, 'n.txt'), await file(world, `${crypto.randomUUID()}.txt`))
    },
    gives: { message: 'Successfully moved' },
    note: 'signed URLs that are out lead to the file where it is now',
  },
  {
    part: 'Files',
    call: '.createSignedUploadUrl(path, { upsert }), .uploadToSignedUrl(path, token, body)',
    run: async (world) => {
      const files = world.client.storage.from('media')
      const path = await file(world, 's.txt')
      const { data } = await files.createSignedUploadUrl(path, { upsert: true })
      return files.uploadToSignedUrl(path, data?.token ?? '', 'signed', text)
    },
    gives: {},
    note: 'for two hours, without credentials',
  },
  {
    part: 'Files',
    call: '.download(path, { transform })',
    run: async (world) =>
      world.client.storage.from('media').download(await file(world, 'm.txt'), { transform: { width: 9 } }),
    refuses: 'INVALID_INPUT|StorageUnknownError',
    note: 'of images; here of a text',
  },
  {
    part: 'Files',
    call: '.getPublicUrl(path, { download, transform })',
    run: async (world) => {
      const { name, path } = await world.publicFile()
      const { publicUrl } = world.client.storage.from(name).getPublicUrl(path).data
      return { data: { text: await (await fetch(publicUrl)).text() }, error: null }
    },
    gives: { text: 'hello' },
    note: 'of public buckets, where the URL of `createClient` names the project: `{root_url}/p/<project id>`',
  },
  {
    part: 'Files',
    call: '.download(path, { versionId })',
    run: async (world) => world.client.storage.from('media').info(await file(world, 'm.txt'), { versionId: 'x' }),
    refuses: 'INVALID_INPUT',
    verdict: 'not offered',
    note: 'files have one version',
  },
  {
    part: 'Buckets',
    call: 'storage.createBucket(name, { public, fileSizeLimit, allowedMimeTypes }), .updateBucket(), .emptyBucket(), .deleteBucket()',
    run: async ({ server }) => {
      const name = `b-${crypto.randomUUID()}`
      await server.storage.createBucket(name, { public: false, fileSizeLimit: '20MB', allowedMimeTypes: ['image/*'] })
      await server.storage.updateBucket(name, { public: true })
      await server.storage.emptyBucket(name)
      return server.storage.deleteBucket(name)
    },
    gives: { message: 'Successfully deleted' },
    note: 'with the server key; at most 200 buckets, of a limit of 50 MB',
  },
  {
    part: 'Buckets',
    call: 'storage.createBucket() without the server key',
    run: ({ client }) => client.storage.createBucket('mine'),
    refuses: 'AccessDenied',
  },
  {
    part: 'Buckets',
    call: 'storage.listBuckets(options), .getBucket(name)',
    run: ({ client }) => client.storage.getBucket('media'),
    gives: { name: 'media', public: false },
    note: 'users see public buckets, and `media`',
  },
  {
    part: 'Buckets',
    call: "storage.createBucket(name, { type: 'ANALYTICS' }), .createBucket(name, { versioningStatus: 'ENABLED' })",
    run: ({ server }) => server.storage.createBucket('a', { public: false, type: 'ANALYTICS' }),
    refuses: 'INVALID_INPUT',
    verdict: 'not offered',
    note: 'files have one version',
  },
  {
    part: 'Buckets',
    call: "storage.from('nowhere')",
    run: ({ client }) => client.storage.from('nowhere').upload('x.txt', 'x', text),
    refuses: 'NoSuchBucket',
  },
]

import type { Dictionary } from '#server/http/words.ts'

/** What is said of files, in the media library and in apps. */
export const mediaWords: Dictionary = {
  filename: ['File name', 'Such as `banner.png`.'],
  mime_type: ['Type', 'Such as `image/png`.'],
  size_bytes: ['Size', 'In bytes, at most 50 MB.', { unset: 'Unknown; some projects need it' }],
  is_public: ['Public', 'Anybody reads the file at its lasting address.', { default: false }],
  bucket: ['Bucket', 'The name of a bucket: `media`.'],
  key: ['Key', 'The place of the file, such as `user/<user id>/a.png`.'],
  method: ['Method', '`GET` reads, `PUT` writes.'],
  content_type: ['Type', 'Of a file that is written, such as `image/png`.'],
  expires_in_seconds: [
    'Valid for',
    'Seconds; at most an hour for writing, a day for reading.',
    { unset: 'Ten minutes for writing, an hour for reading' },
  ],
  w: ['Width', 'In pixels.', { unset: 'As the height needs' }],
  h: ['Height', 'In pixels.', { unset: 'As the width needs' }],
  fit: ['Fit', 'Cover fills the size and cuts off, contain shows all.', { default: 'cover' }],
  format: ['Format', 'Of the picture that is answered.', { unset: 'WebP' }],
  upload_id: ['Upload', 'The id that the upload was registered with.'],
  asset_id: ['File', 'The id of the file.'],
  keys: ['Keys', 'Which files are deleted.'],
  alt_text: ['Description', 'Of a picture, for people who do not see it.'],
  folder_id: ['Folder', 'The id of a folder.', { unset: 'None' }],
  operations: ['Steps', 'What is done with the picture, in this order.'],
  'operations.type': ['Step', 'Change the size, cut, change the format, drop hidden data, or make a small picture.'],
  'operations.width': ['Width', 'In pixels.'],
  'operations.height': ['Height', 'In pixels.'],
  'operations.format': ['Format', 'Of the new file.'],
  'operations.quality': ['Quality', '1 to 100, of formats that lose detail.'],
}

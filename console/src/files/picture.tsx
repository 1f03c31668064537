import { File, FileArchive, FileAudio, FileText, FileVideo } from 'lucide-react'
import { isPicture, type Media, ownUrl } from './data.ts'

const icons = [
  [/^video\//, FileVideo],
  [/^audio\//, FileAudio],
  [/zip/, FileArchive],
  [/pdf|text|json/, FileText],
] as const

/** A file as a small picture, or as the sign of its kind. */
export const Picture = ({ file, size = 28 }: { file: Media; size?: number }) => {
  const Icon = icons.find(([type]) => type.test(file.mime_type))?.[1] ?? File
  if (isPicture(file))
    return <img src={ownUrl(file.thumbnail_url ?? file.storage_url)} alt={file.alt_text ?? ''} loading="lazy" />
  return <Icon size={size} strokeWidth={1.5} aria-hidden />
}

import { domainToASCII, domainToUnicode } from 'node:url'

/** What nobody sees, or what turns the order of what they see: two addresses that look alike would be two accounts. Separators too. */
const unseen = /[\p{C}\p{Z}\p{DI}]/u
/** The parts of a URL that its parser would take off a domain. */
const noDomain = /[/\\?#%@:<>^|[\]\s]/

// composed or in lower case they become an ASCII i and k: another mailbox would pass for this one
const strange = /[\u0130\u212a]/u

/**
 * The one form of a mail address, for every way in: trimmed, its letters composed (RFC 6532, 3.1), those beyond ASCII in lower case (Postgres lowers the others,
 * and compares), a domain in Unicode as DNS has it (punycode). A text that is no address stays as it is, for the check to refuse.
 */
export const canonicalAddress = (text: string): string => {
  if (strange.test(text)) return text.trim()
  const composed = text.trim().normalize('NFC')
  const trimmed = composed.replace(/[^\0-\x7f]+/gu, (letters) => letters.toLowerCase()).normalize('NFC')
  const at = trimmed.lastIndexOf('@')
  const domain = trimmed.slice(at + 1)
  if (at < 0 || domain.length > 254 || !/[^\0-\x7f]/.test(domain) || unseen.test(domain) || noDomain.test(domain))
    return trimmed
  const ascii = domainToASCII(domain)
  // a letter that DNS takes for another one (a long s, full-width forms) is not what was meant, or not by whom
  return domainToUnicode(ascii) === domain.toLowerCase() ? `${trimmed.slice(0, at)}@${ascii}` : trimmed
}

const form =
  /^(?!\.)(?!.*\.\.)(?!.*\.@)[^\s\p{Cc}@,;<>()"\\\u0130\u212a]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])$/u

/** Why a text in its canonical form is no mail address, or null. internal.is_email checks the same again, but for what punycode stands for. */
export const addressProblem = (text: string): string | null => {
  if (unseen.test(text)) return 'must have no invisible characters'
  if (text.length > 254 || !form.test(text)) return 'must be a mail address'
  const domain = text.slice(text.lastIndexOf('@') + 1)
  return /(^|\.)xn--/i.test(domainToUnicode(domain)) ? 'must have a domain that exists in Unicode' : null
}

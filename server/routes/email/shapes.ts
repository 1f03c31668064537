import { z } from 'zod'
import { Line } from '#server/http/schemas.ts'
import type { Dictionary } from '#server/http/words.ts'
import { parseAddress } from '#server/providers/mail.ts'
import { draftWords } from '#server/routes/campaigns/shapes.ts'

export const TemplateKey = z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, 'must match ^[a-z][a-z0-9_.-]{0,127}$')
/** `transactional`, or what users can unsubscribe from. */
export const Category = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, 'must match ^[a-z][a-z0-9_-]{0,63}$')

/** What is said of mail, in all its files. */
export const emailWords: Dictionary = {
  ...draftWords,
  to: ['To', 'An address; or name a user.'],
  template_key: ['Template', 'The key of a template, such as `receipt`.'],
  variables: ['Variables', 'What fills the marks of the template, such as `{"amount": 12}`.'],
  subject: ['Subject', 'One line; marks such as `{{name|friend}}` are filled in.'],
  html: ['HTML', 'The message for mail programs that show HTML.'],
  text: ['Text', 'The message as plain text.'],
  from: ['From', 'An address, or a name and an address.', { unset: 'The sender of the project' }],
  reply_to: ['Reply to', 'The address that answers go to.'],
  headers: ['Headers', 'Further headers, such as `{"X-Campaign": "may"}`.'],
  category: [
    'Category',
    'What users can unsubscribe from, such as `news`.',
    { unset: 'As the template says, else transactional' },
  ],
  track: ['Track', 'Counts who opens it and who follows its links.', { default: false }],
  'messages.user_id': ['User', 'The user who gets it; or name an address.'],
  messages: ['Messages', 'Up to 100; all of them are queued, or none.'],
  'variants.template_key': ['Template', 'What these users get.'],
  user_ids: ['Users', 'The ids of the users who get it.'],
  address: 'Address',
  reason: ['Reason', 'Why it gets no mail.'],
  'suppressions.category': ['Category', 'Only mail of this category.', { unset: 'All mail' }],
  categories: ['Categories', 'On or off for each, such as `{"news": false}`.'],
  unsubscribed_all: ['Nothing at all', 'No mail but what is needed, such as codes.', { unset: 'As it is' }],
  locale: ['Language', 'Such as `de`.', { unset: 'Of the request' }],
  id: ['Id', 'Of this event at the provider: it counts once.'],
  type: ['What happened', 'The mail was delivered, came back, or was reported as spam.'],
  bounce_type: ['Kind of bounce', '`hard` ends mail to the address; a soft one does not.'],
  message_id: ['Message id', 'The `Message-ID` of the mail.'],
}

/** Becomes part of a mail header: a line break would begin another header. */
export const From = Line(400).refine(
  (value) => parseAddress(value) !== null,
  'must be a mail address, or Name <mail address>',
)

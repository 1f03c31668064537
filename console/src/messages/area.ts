import { MessageSquare } from 'lucide-react'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Reach',
  order: 3,
  title: 'Messages and feeds',
  icon: MessageSquare,
  words: 'conversations chat friends realtime feed',
  pages: [
    { path: 'messages', title: 'Conversations', load: () => import('./conversations.tsx') },
    { path: 'messages/feeds', title: 'Feeds', load: () => import('./feeds.tsx') },
    { path: 'messages/friends', title: 'Friends', load: () => import('./friends.tsx') },
    {
      path: 'messages/realtime',
      title: 'Realtime',
      words: 'sockets connections',
      load: () => import('./realtime.tsx'),
    },
    { path: 'messages/$conversationId', load: () => import('./conversation.tsx') },
  ],
})

import { Bot } from 'lucide-react'
import { adminListAiPrompts } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { declareArea } from '../areas.ts'

export const area = declareArea({
  group: 'Build',
  order: 5,
  title: 'AI',
  icon: Bot,
  words: 'prompts models openai anthropic google mistral llm',
  pages: [
    { path: 'ai', title: 'Prompts', load: () => import('./prompts.tsx') },
    { path: 'ai/prompts/new', load: () => import('./new.tsx') },
    { path: 'ai/prompts/$id', load: () => import('./prompt.tsx') },
    { path: 'ai/providers', title: 'Providers', words: 'keys', load: () => import('./providers.tsx') },
    {
      path: 'ai/evaluations',
      title: 'Evaluations',
      words: 'cases tests quality pass fail',
      load: () => import('./evaluations.tsx'),
    },
    { path: 'ai/calls', title: 'Calls', words: 'log invocations', load: () => import('./calls.tsx') },
    { path: 'ai/spend', title: 'Spend', words: 'budget costs limit', load: () => import('./spend.tsx') },
  ],
  actions: [{ title: 'New prompt', to: 'ai/prompts/new' }],
  find: {
    title: 'Prompts',
    rows: async (projectId, text) => {
      const { data } = await call(adminListAiPrompts, { path: { projectId }, query: { limit: 100 } })
      return data
        .filter(({ name }) => name.includes(text.toLowerCase()))
        .slice(0, 6)
        .map(({ name, model }) => ({ id: name, title: name, about: model, to: `ai/prompts/${name}` }))
    },
  },
})

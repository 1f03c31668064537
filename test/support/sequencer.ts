import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that start programs or databases of their own: begun last, one of them would run alone at the end. */
const longest =
  /\/test\/(loader\/(loader|replay|whole|rollout)|process\/(start|run|survive|stop)|database\/(embedded|faults|move)|failover\/(failover|faults)|fleet\/fleet|admin\/admin|docs\/guides|backup\/(backup|project)|console\/pages|media\/thousand|pools\/pools|secrets\/keys|definitions\/definitions|lists\/pages-bytes|control_webhooks\/kill|(email|push|monetization|media)\/crash)\.test\.ts$/

/** A machine that has run the suite before knows how long each file takes. Elsewhere the longest come first by name, then the largest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    if (sorted.some((file) => this.ctx.cache.getTestSpecificationResult(file))) return sorted
    const isLong = (file: TestSpecification) => longest.test(file.moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

import type { BehaviourSetting } from "../behaviour.ts";
import type { CloudClock } from "../clock.ts";
import type { Faults } from "../endpoint/faults.ts";
import type { ParameterDeclaration, Parameters } from "../endpoint/parameters.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import type { Lifecycle } from "../machines/lifecycle.ts";
import type { PrivateAddresses } from "../state/private-addresses.ts";
import type { Region } from "../state/region.ts";

/** The parts of the cloud that actions work on. */
export interface CloudParts {
  readonly behaviour: BehaviourSetting;
  readonly clock: CloudClock;
  readonly faults: Faults;
  readonly lifecycle: Lifecycle;
  readonly addresses: PrivateAddresses;
}

export interface ActionRequest {
  readonly parameters: Parameters;
  readonly accountId: string;
  readonly region: Region;
  readonly cloud: CloudParts;
  /** Call it after all checks and before any change: a dry run ends here. */
  readonly passDryRun: () => void;
}

/** One API action, declared as data. Parameters that it doesn't declare are rejected before `run`. */
export interface Action {
  readonly name: string;
  readonly parameters: ParameterDeclaration;
  readonly required: readonly string[];
  readonly run: (request: ActionRequest) => XmlObject | Promise<XmlObject>;
}

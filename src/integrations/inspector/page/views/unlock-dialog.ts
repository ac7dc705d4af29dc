import type { ErrorReply, Named, OwnerView, UnlockReply, UnlockRequest } from '../../messages.js';
import { visible } from '../../../shared/inspection-words.js';
import { byId, element, named, nameNode, setText } from '../parts/dom.js';
import type { Model } from '../parts/model.js';
import { processNode } from '../parts/owners.js';
import { selectionOf, type Selection } from '../parts/route.js';
import { sessionSecret } from '../parts/session.js';

interface Asked {
  readonly lock: Named;
  /** What the user types: the name, or the id if the page does not have the whole name. */
  readonly typed: Selection;
  readonly owner: OwnerView;
}

/** Asks before it frees a lock: the user types the name of the lock again. */
export class UnlockDialog {
  readonly #dialog = byId('unlock', HTMLDialogElement);
  readonly #input = byId('unlock-name', HTMLInputElement);
  readonly #confirm = byId('unlock-confirm', HTMLButtonElement);
  readonly #outcome = byId('unlock-outcome');
  #asked: Asked | undefined;
  #state: 'asking' | 'sending' | 'answered' = 'asking';

  constructor(
    private readonly model: Model,
    /** Called when the dialog has closed after it freed the lock. */
    private readonly onFreed: (lock: Named) => void,
  ) {
    this.#input.addEventListener('input', () => this.#show());
    byId('unlock-cancel').addEventListener('click', () => this.#dialog.close());
    this.#dialog.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#send();
    });
  }

  ask(lock: Named, owner: OwnerView): void {
    const typed = selectionOf(lock);
    this.#asked = { lock, owner, typed };
    this.#state = 'asking';
    this.#input.value = '';
    setText(this.#outcome, '');
    byId('unlock-facts').replaceChildren(
      element('dt', {}, 'Lock'),
      element('dd', {}, nameNode(lock)),
      ...(typed.by === 'id' ? [element('dt', {}, 'Id'), element('dd', {}, named(typed.value))] : []),
      element('dt', {}, 'Owner'),
      element('dd', {}, processNode(owner.process, owner.owner, owner.isThisClient), named(owner.owner, 'owner')),
    );
    setText(byId('unlock-label'), `Type the ${typed.by} of the lock to free it`);
    this.#show();
    this.#dialog.showModal();
    this.#input.focus();
  }

  /** A name with control characters cannot be typed: it is typed as the page shows it. */
  #isConfirmed(): boolean {
    const { value } = this.#asked?.typed ?? { value: '' };
    return this.#input.value === value || this.#input.value === visible(value);
  }

  #show(): void {
    this.#confirm.disabled = this.#state !== 'asking' || !this.#isConfirmed();
    setText(this.#confirm, this.#state === 'sending' ? 'Freeing' : 'Free the lock');
    setText(byId('unlock-cancel'), this.#state === 'answered' ? 'Close' : 'Cancel');
    this.#input.readOnly = this.#state !== 'asking';
  }

  async #send(): Promise<void> {
    const asked = this.#asked;
    if (asked === undefined || this.#state !== 'asking' || !this.#isConfirmed()) return;
    this.#become('sending');
    const { lock, owner, typed } = asked;
    const { value: confirm } = typed;
    const body: UnlockRequest = { [typed.by]: confirm, owner: owner.owner, confirm };
    const secret = sessionSecret();
    const headers = {
      'content-type': 'application/json',
      'holdfast-csrf': this.model.hello?.csrf ?? '',
      ...(secret !== undefined && { 'holdfast-session': secret }),
    };
    let outcome: string | undefined;
    try {
      const response = await fetch('unlock', { method: 'POST', headers, body: JSON.stringify(body) });
      const reply = (await response.json()) as UnlockReply | ErrorReply;
      if ('error' in reply) outcome = refusal(reply);
      else if (!reply.freed) outcome = 'Not freed: this owner no longer has the lock. Look who has it now.';
    } catch {
      outcome = 'No answer: the lock may be free or not. Look at it before you try again.';
    }
    if (this.#asked !== asked) return;
    if (outcome === undefined) {
      this.#dialog.close();
      this.onFreed(lock);
      return;
    }
    this.#become('answered');
    setText(this.#outcome, outcome);
    byId('unlock-cancel').focus();
  }

  #become(state: 'asking' | 'sending' | 'answered'): void {
    this.#state = state;
    this.#show();
  }
}

/** Why a lock was not freed, or that the outcome is unknown. */
const refusal = ({ error: { code, message } }: ErrorReply): string =>
  code === 'unknown outcome' ? message : `Not freed: ${message}`;

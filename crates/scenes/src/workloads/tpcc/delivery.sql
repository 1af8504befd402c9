\set w random(1, WAREHOUSES)
\set d random(1, 10)
BEGIN;
WITH oldest AS (
    DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = (
        SELECT no_o_id FROM new_order WHERE no_w_id = :w AND no_d_id = :d
        ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING no_o_id),
delivered AS (
    UPDATE orders SET o_carrier_id = 5 FROM oldest
    WHERE o_w_id = :w AND o_d_id = :d AND o_id = no_o_id RETURNING o_id, o_c_id),
lines AS (
    UPDATE order_line SET ol_delivery_d = now() FROM oldest
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = no_o_id RETURNING ol_amount)
UPDATE customer SET c_balance = c_balance + (SELECT sum(ol_amount) FROM lines) FROM delivered
    WHERE c_w_id = :w AND c_d_id = :d AND c_id = o_c_id;
COMMIT;

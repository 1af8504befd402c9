\set w random(1, WAREHOUSES)
\set d random(1, 10)
\set c random_gaussian(1, 3000, 3)
SELECT count(*) FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = 'NAME' || :c % 1000;
SELECT ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = (SELECT max(o_id) FROM orders
        WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c);
